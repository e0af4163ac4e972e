//! The fencing counters of a master in memory.

use bytes::Bytes;

use super::{Master, is_ours, millis};
use crate::protocol::fanout::{Act, Fence};
use crate::protocol::fencing::{self, Counters};
use crate::protocol::request::Ttl;
use crate::protocol::time::Moment;
use crate::protocol::votes::{Fault, Incumbent, Vote};

impl Master {
    /// Executes one act at `now`, with what there is to do with a counter; also tells the number that the key took.
    pub fn execute_fenced(
        &mut self,
        (act, fence): (Act, Option<Fence>),
        resource: &Bytes,
        holder: &Bytes,
        ttl: Ttl,
        now: Moment,
    ) -> (Vote, Option<u64>) {
        let Some(fence) = fence else { return (self.execute(act, resource, holder, ttl, now), None) };
        let value = self.live(resource, now).map(|entry| entry.value.clone().unwrap_or_default());
        let ours = value.as_ref().is_none_or(|value| is_ours(value, holder));
        let shard = fencing::shard(resource);
        let counter = self.counters.get(&shard).copied().unwrap_or(0);
        match fence {
            Fence::Restore(token) => {
                let number = token.as_u64();
                if ours && !self.uncounted && counter < number {
                    self.counters.insert(shard, number);
                }
                let holder = if value.is_some() { holder } else { &signed(holder, number) };
                (self.execute(act, resource, holder, ttl, now), None)
            }
            Fence::Raise { .. } if value.is_none() => (Vote::Absent, None),
            Fence::Raise { seen, .. } if value != Some(signed(holder, seen)) => {
                (Vote::Held(Incumbent::default()), None)
            }
            Fence::Propose(_) if !ours => (self.execute(act, resource, holder, ttl, now), None),
            _ if self.uncounted => (Vote::Failed(Fault::Uncounted(NOT_LOOKED_AFTER.into())), None),
            Fence::Raise { to, .. } => {
                self.counters.insert(shard, counter.max(to));
                (Vote::Granted, None)
            }
            Fence::Propose(proposal) => match value {
                Some(value) => said_before(&value, holder),
                None => {
                    let sane = millis(now) * 1_000 + 999 + fencing::FARTHEST_PROPOSAL;
                    let proposal = if proposal > sane { 0 } else { proposal };
                    let Some(number) = fencing::next(counter, proposal) else {
                        let words = format!("DENIED the fencing counter {shard} is used up");
                        return (Vote::Failed(Fault::Refused(words.into())), None);
                    };
                    self.counters.insert(shard, number);
                    (self.execute(act, resource, &signed(holder, number), ttl, now), Some(number))
                }
            },
        }
    }

    /// Its counters, as another master may need them to recover.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Forgets its counters alone. It takes no part in fencing until it is told some to [`recover`](Self::recover).
    pub fn lose_counters(&mut self) {
        self.counters.clear();
        self.uncounted = true;
    }

    /// Raises the counters to these, after which it takes part in fencing.
    pub fn recover(&mut self, counters: &Counters) {
        for (shard, counter) in counters {
            let known = self.counters.entry(*shard).or_default();
            *known = *counter.max(known);
        }
        self.uncounted = false;
    }
}

const NOT_LOOKED_AFTER: &str = "its counters are not looked after yet";

fn signed(holder: &Bytes, number: u64) -> Bytes {
    [holder.as_ref(), format!("|{number}").as_bytes()].concat().into()
}

/// A claim that comes twice finds its own key, and changes nothing.
fn said_before(value: &Bytes, holder: &Bytes) -> (Vote, Option<u64>) {
    let number =
        value.get(holder.len() + 1..).and_then(|number| std::str::from_utf8(number).ok()?.parse().ok());
    match number {
        Some(number) => (Vote::Granted, Some(number)),
        None => (Vote::Unknown(Fault::Unintelligible("+".into())), None),
    }
}
