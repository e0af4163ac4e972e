//! The masters it runs on: five of its own, or a fleet that is asked for by name.

use quorlock::testbed::Testbed;
use quorlock::{Builder, Policy, Redlock};

use crate::args::{Drill, Global};
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::fleet::{self, Fleet};

const MASTERS: usize = 5;
/// Which of its own masters is frozen.
const FROZEN: usize = 1;

pub(super) enum Site {
    /// Ended with everything on them when dropped.
    Own { bed: Option<Testbed>, policy: Policy },
    /// Somebody's.
    Fleet(Box<Fleet>),
}

impl Site {
    /// A fleet only by --on-fleet: a variable that is set for other commands is no wish to rehearse there.
    pub(super) fn choose(global: &Global, args: &Drill) -> Result<Self, Failure> {
        if args.on_fleet {
            return Ok(Self::Fleet(Box::new(Fleet::of(global)?)));
        }
        let from_variable =
            std::env::var("QUORLOCK_MASTERS").is_ok_and(|variable| variable == global.masters.join(","));
        if fleet::is_given(&global.masters) && !from_variable || global.config.is_some() {
            return Err(Failure::new(
                Exit::Usage,
                "bad_request",
                "the drill runs on five masters of its own: leave --masters and --config out, or add --on-fleet to rehearse \
                 on that fleet",
            ));
        }
        Ok(Self::Own { bed: None, policy: fleet::policy(global, &Config::default())? })
    }

    pub(super) fn policy(&self) -> Policy {
        match self {
            Self::Own { policy, .. } => *policy,
            Self::Fleet(fleet) => fleet.policy,
        }
    }

    pub(super) async fn set_up(&mut self) -> Result<(), Failure> {
        let Self::Own { bed, policy } = self else { return Ok(()) };
        let started = tokio::task::spawn_blocking(|| Testbed::start(MASTERS)).await;
        let started = started.map_err(|error| Failure::other(format!("the test bed failed: {error}")))??;
        Redlock::builder().masters(started.urls()).policy(*policy).init().await?;
        *bed = Some(started);
        Ok(())
    }

    pub(super) fn builder(&self) -> Builder {
        match self {
            Self::Own { bed, .. } => {
                Redlock::builder().masters(bed.as_ref().map(Testbed::urls).unwrap_or_default())
            }
            Self::Fleet(fleet) => fleet.builder.clone(),
        }
    }

    /// What it is about to do, and where.
    pub(super) fn about(&self) -> String {
        match self {
            Self::Own { .. } => "on five masters of its own, which end with it".to_owned(),
            Self::Fleet(_) => format!(
                "on the fleet given: takes and gives back locks whose names begin with {:?}, and freezes no master",
                super::trial::PREFIX
            ),
        }
    }

    /// Whether there is one that may be.
    pub(super) fn freeze_one(&self) -> Result<bool, Failure> {
        match self {
            Self::Own { bed: Some(bed), .. } => {
                bed[FROZEN].freeze()?;
                Ok(true)
            }
            Self::Own { bed: None, .. } | Self::Fleet(_) => Ok(false),
        }
    }
}
