//! What this client remembers of resources that it has no more to do with.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::protocol::fencing;

/// How many it has had a moment ago. Two that share a slot drive each other out, and how long they are kept is counted anew.
const SLOTS: usize = 64;
/// For how long, after it had to stand in line for it, a client thinks that others want a resource all the time.
const CROWDED: Duration = Duration::from_secs(1);
/// How many of these are kept in mind. The others cost a claim that is refused.
const MOST_CROWDS: usize = 1024;

/// What it has had a moment ago.
#[derive(Debug, Default)]
pub(super) struct Lately(Vec<Option<Left>>);

#[derive(Debug)]
struct Left {
    key: Bytes,
    at: Instant,
    kept_since: Instant,
    round_trip: Duration,
}

impl Lately {
    /// The last lock of this client on `key` was given back, and nobody in it waits.
    pub(super) fn left(&mut self, key: &Bytes, kept_since: Instant, round_trip: Duration) {
        if self.0.is_empty() {
            self.0.resize_with(SLOTS, || None);
        }
        if let Some(slot) = self.0.get_mut(slot(key)) {
            *slot = Some(Left { key: key.clone(), at: Instant::now(), kept_since, round_trip });
        }
    }

    /// Since when this client has kept `key`, and its round trip, if it left it for less than `moment` and two round trips:
    /// too short for others to be told and to claim.
    pub(super) fn kept(&mut self, key: &[u8], moment: Duration) -> Option<(Instant, Duration)> {
        let left = self.0.get_mut(slot(key))?.take_if(|left| left.key == key)?;
        (left.at.elapsed() < moment + left.round_trip * 2).then_some((left.kept_since, left.round_trip))
    }
}

fn slot(key: &[u8]) -> usize {
    usize::from(fencing::shard(key)) % SLOTS
}

/// What it had to stand in line for: when it got it, and how long its claim took.
#[derive(Debug, Default)]
pub(super) struct Crowds(HashMap<Bytes, (Instant, Duration)>);

impl Crowds {
    pub(super) fn note(&mut self, key: &Bytes, took: Duration) {
        if self.0.len() >= MOST_CROWDS {
            self.0.retain(|_, (since, _)| since.elapsed() < CROWDED);
        }
        if self.0.len() < MOST_CROWDS || self.0.contains_key(key) {
            self.0.insert(key.clone(), (Instant::now(), took));
        }
    }

    /// How long a claim of `key` took, if others may well want it still.
    pub(super) fn at(&self, key: &[u8]) -> Option<Duration> {
        self.0.get(key).filter(|(since, _)| since.elapsed() < CROWDED).map(|(_, took)| *took)
    }
}
