//! The fencing counters of a master in memory.

use bytes::Bytes;

use super::{Master, millis};
use crate::protocol::fanout::{Act, Fence};
use crate::protocol::fencing::{self, Counters};
use crate::protocol::request::Ttl;
use crate::protocol::time::Moment;
use crate::protocol::votes::{Fault, Incumbent, Vote};
use crate::transport::Ask;

impl Master {
    /// Executes what `ask` asks for at `now`; also tells the number that keys took.
    pub fn answer(&mut self, ask: &Ask, now: Moment) -> (Vote, Option<u64>) {
        let (act, ttl, holder) =
            ((ask.dispatch().act, ask.dispatch().fence), ask.dispatch().ttl, ask.holder());
        match ask.single() {
            Some(resource) => self.execute_fenced(act, &resource, &holder, ttl, now),
            None => self.execute_all_fenced(act, ask.keys(), &holder, ttl, now),
        }
    }

    /// Executes one act on several keys at `now`, all or none. One number is for all of them.
    pub fn execute_all_fenced(
        &mut self,
        (act, fence): (Act, Option<Fence>),
        resources: &[Bytes],
        holder: &Bytes,
        ttl: Ttl,
        now: Moment,
    ) -> (Vote, Option<u64>) {
        let Some(fence) = fence else { return (self.execute_all(act, resources, holder, ttl, now), None) };
        // Whether it would be done, were there no counters.
        let (as_if, compared) = match fence {
            Fence::Raise { seen, .. } => (Act::Renew, signed(holder, seen)),
            Fence::Propose(_) | Fence::Restore(_) => (act, holder.clone()),
        };
        let vote = self.clone().execute_all(as_if, resources, &compared, ttl, now);
        if vote != Vote::Granted {
            return (vote, None);
        }
        let shards: Vec<u16> = resources.iter().map(|resource| fencing::shard(resource)).collect();
        let greatest = shards.iter().filter_map(|shard| self.counters.get(shard)).max().copied().unwrap_or(0);
        let number = match fence {
            Fence::Restore(token) => token.as_u64(),
            _ if self.uncounted => return (Vote::Failed(Fault::Uncounted(NOT_LOOKED_AFTER.into())), None),
            Fence::Raise { to, .. } => to,
            Fence::Propose(proposal) => match fencing::next(greatest, sane(proposal, now)) {
                Some(number) => number,
                None => return (used_up("a fencing counter"), None),
            },
        };
        if !self.uncounted {
            for shard in shards {
                let counter = self.counters.entry(shard).or_default();
                *counter = number.max(*counter);
            }
        }
        match fence {
            Fence::Raise { .. } => (Vote::Granted, None),
            Fence::Propose(_) => {
                (self.execute_all(act, resources, &signed(holder, number), ttl, now), Some(number))
            }
            Fence::Restore(_) => {
                for resource in resources {
                    let there = self.live(resource, now).is_some();
                    let holder = if there { holder } else { &signed(holder, number) };
                    self.execute(act, resource, holder, ttl, now);
                }
                (Vote::Granted, None)
            }
        }
    }

    /// Executes one act at `now`, with what there is to do with a counter; also tells the number that the key took.
    pub fn execute_fenced(
        &mut self,
        (act, fence): (Act, Option<Fence>),
        resource: &Bytes,
        holder: &Bytes,
        ttl: Ttl,
        now: Moment,
    ) -> (Vote, Option<u64>) {
        if act.is_of_line() {
            return self.line(act, resource, holder);
        }
        let Some(fence) = fence else { return (self.execute(act, resource, holder, ttl, now), None) };
        let ours = self.live(resource, now).is_none_or(|entry| entry.is_of(holder));
        let value = self.live(resource, now).map(|entry| entry.value.clone().unwrap_or_default());
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
                    let Some(number) = fencing::next(counter, sane(proposal, now)) else {
                        return (used_up(&format!("the fencing counter {shard}")), None);
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

/// A proposal, unless it comes from a clock that is days ahead.
fn sane(proposal: u64, now: Moment) -> u64 {
    let farthest = millis(now) * 1_000 + 999 + fencing::FARTHEST_PROPOSAL;
    if proposal > farthest { 0 } else { proposal }
}

fn used_up(what: &str) -> Vote {
    Vote::Failed(Fault::Refused(format!("DENIED {what} is used up").into()))
}

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
