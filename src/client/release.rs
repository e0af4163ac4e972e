//! How giving a lock back went.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::error::Lost;
use super::stake::Stake;
use crate::protocol::quorum::MasterSet;
use crate::protocol::release::Released as Outcome;
use crate::protocol::votes::Vote;

/// The report of a release. There is nothing to retry: what can still be done, the client does by itself.
#[must_use = "a release may find that the lock was over, or that masters keep the key"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Released {
    /// Others may have the lock: enough masters said that our key is gone.
    Freed {
        /// On how many masters the key was there until now.
        deleted: usize,
        /// Masters that have not said so yet. The client goes on with them.
        pending: Vec<String>,
    },
    /// Too few masters said in time that the key is gone.
    Lingering {
        /// The masters that may have the key still, each with its answer.
        on: Vec<(String, String)>,
        /// The longest it can stay on a master that is up.
        up_to: Duration,
    },
    /// The lock was over before it was given back, and somebody else may have worked meanwhile. Alarm; do not retry.
    AlreadyLost(Lost),
}

impl Released {
    /// Whether the lock was ours to the end and others may have it now.
    #[must_use]
    pub const fn is_freed(&self) -> bool {
        matches!(self, Self::Freed { .. })
    }
}

/// Waits for the outcome of a release that is under way.
pub(crate) async fn outcome(stake: &Arc<Stake>) -> Released {
    let mut limit = Instant::now() + stake.shared.policy.master_timeout();
    let outcome = loop {
        let changed = stake.changed.notified();
        if let Some(outcome) = stake.look(|attempt, _| attempt.released()) {
            break outcome;
        }
        if timeout_at(limit, changed).await.is_err() {
            stake.step(crate::protocol::attempt::Attempt::on_time);
            limit = Instant::now() + Duration::from_millis(1);
        }
    };
    let names = |masters: MasterSet| masters.map(|master| stake.shared.name(master)).collect();
    match outcome {
        Outcome::Freed { deleted, pending } => {
            Released::Freed { deleted: deleted.len(), pending: names(pending) }
        }
        Outcome::Lingering { on, until } => {
            let (tally, now) = stake.look(|attempt, now| (attempt.tally(), now));
            let answer =
                |vote: Option<&Vote>| vote.map_or("no answer in time".to_owned(), ToString::to_string);
            let on = on.map(|master| (stake.shared.name(master), answer(tally.vote(master)))).collect();
            Released::Lingering { on, up_to: until.since(now) }
        }
        Outcome::AlreadyLost(loss) => {
            Released::AlreadyLost(Lost { resources: stake.resources.to_string(), why: loss.into() })
        }
    }
}
