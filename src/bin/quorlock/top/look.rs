//! What is seen at one moment.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use quorlock::{Abstention, Sighting};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::args::Top;
use crate::duration::millis;
use crate::exit::Failure;
use crate::fleet::Fleet;
use crate::inspect::{outcome, whole};
use crate::list::{self, Left};

/// A name to ask masters about, to see how they are. Nobody need have a lock there.
const PROBE: &str = "quorlock-top";

pub(super) struct Look {
    pub(super) at: Instant,
    pub(super) needed: usize,
    pub(super) masters: Vec<Master>,
    pub(super) locks: BTreeMap<String, Lock>,
    /// Whether a lock that is not among them is none: enough masters were searched, and to the end.
    pub(super) is_whole: bool,
    pub(super) is_complete: bool,
}

pub(super) struct Master {
    pub(super) address: String,
    pub(super) state: State,
    pub(super) round_trip: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Up,
    /// It casts no vote for so long.
    Quarantined(Duration),
    NotAdmitted,
    Down(String),
}

pub(super) struct Lock {
    pub(super) outcome: &'static str,
    pub(super) holder: String,
    pub(super) votes: usize,
    pub(super) left: Left,
    pub(super) json: Value,
}

impl Look {
    /// Connects anew: it sees what a client finds that starts now, a restart or another role included, and needs nobody to keep
    /// connections alive. That costs each master two connections a look.
    pub(super) async fn take(args: &Top, Fleet { builder, policy }: &Fleet) -> Result<Self, Failure> {
        let (inspection, listing) =
            tokio::join!(builder.inspect(PROBE), builder.list(args.pattern.as_bytes(), args.limit));
        let (inspection, listing) = (inspection?, listing?);
        let quorum = listing.quorum;
        let locks = listing.resources.iter().map(|(resource, seen)| {
            let finding = seen.finding(policy);
            let (holder, votes) = list::most(seen);
            let lock = Lock {
                outcome: outcome(&finding),
                holder: whole(&holder),
                votes,
                left: list::remaining(&finding),
                json: list::object(resource, seen, policy),
            };
            (whole(resource), lock)
        });
        Ok(Self {
            at: Instant::now(),
            needed: quorum.needed(),
            masters: inspection.sightings.iter().map(Master::of).collect(),
            locks: locks.collect(),
            is_whole: listing.is_complete && quorum.masters() - listing.unseen.len() >= quorum.needed(),
            is_complete: listing.is_complete,
        })
    }

    pub(super) fn up(&self) -> usize {
        self.masters.iter().filter(|master| !matches!(master.state, State::Down(_))).count()
    }

    pub(super) fn held(&self) -> usize {
        self.locks.values().filter(|lock| lock.is_held()).count()
    }
}

impl Master {
    fn of(sighting: &Sighting) -> Self {
        let state = match (&sighting.key, sighting.abstains) {
            (Err(why), _) => State::Down(why.clone()),
            (Ok(_), Some(Abstention::Quarantined(left))) => State::Quarantined(left),
            (Ok(_), Some(Abstention::NeverAdmitted)) => State::NotAdmitted,
            (Ok(_), None) => State::Up,
        };
        Self { address: sighting.master.clone(), state, round_trip: sighting.round_trip }
    }

    pub(super) fn json(&self) -> Value {
        let quarantined = if let State::Quarantined(left) = &self.state { Some(millis(*left)) } else { None };
        let is_down = matches!(self.state, State::Down(_));
        json!({
            "master": self.address,
            "state": self.state.word(),
            "round_trip_us": (!is_down).then(|| u64::try_from(self.round_trip.as_micros()).unwrap_or(u64::MAX)),
            "quarantined_ms": quarantined,
            "error": if let State::Down(why) = &self.state { Some(why) } else { None },
        })
    }
}

impl State {
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Quarantined(_) => "quarantined",
            Self::NotAdmitted => "not_admitted",
            Self::Down(_) => "down",
        }
    }
}

impl Lock {
    pub(super) fn is_held(&self) -> bool {
        self.outcome == "held"
    }
}
