//! A master as a value: the key of the one resource, its counter, and what the scripts do with them.

use std::time::Duration;

use crate::protocol::fanout::{Act, Dispatch, Fence};
use crate::protocol::fencing;
use crate::protocol::votes::{Fault, Incumbent, Vote};

/// The key of the one resource. Expiry is in the whole milliseconds of the master's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) holder: usize,
    pub(super) expires: u64,
    /// Set by a command whose connection had broken.
    pub(super) late: bool,
    /// Prolonged by a renewal on which its client had given up. Rule 6 leaves such a key to its ttl.
    pub(super) prolonged: bool,
    /// What it took of the counter; zero for a plain key.
    pub(super) number: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Master {
    pub(super) key: Option<Key>,
    pub(super) run: u32,
    /// Until when it casts no vote, since it forgot.
    pub(super) quarantine: u64,
    pub(super) counter: u64,
    pub(super) uncounted: bool,
}

impl Master {
    pub(super) fn key(&self, now: u64) -> Option<Key> {
        self.key.filter(|key| now < key.expires)
    }

    /// What a master does, as the scripts do it.
    pub(super) fn execute(
        &mut self,
        holder: usize,
        dispatch: &Dispatch,
        late: bool,
        now: u64,
    ) -> (Vote, Option<u64>) {
        let Dispatch { act, ttl, fence, .. } = *dispatch;
        if act.votes() && now < self.quarantine {
            return (Vote::Failed(Fault::Quarantined(Duration::from_nanos(self.quarantine - now))), None);
        }
        let expires = (now / 1_000_000 + u64::from(ttl.as_millis())) * 1_000_000;
        let mut fresh = Key { holder, expires, late, prolonged: false, number: 0 };
        self.key = self.key(now);
        let ours = self.key.is_none_or(|key| key.holder == holder);
        match fence {
            Some(Fence::Restore(token)) => {
                fresh.number = token.as_u64();
                if ours && !self.uncounted {
                    self.counter = self.counter.max(fresh.number);
                }
            }
            Some(Fence::Raise { .. }) if self.key.is_none() => return (Vote::Absent, None),
            Some(Fence::Raise { seen, .. }) if !ours || self.key.is_some_and(|key| key.number != seen) => {
                return (Vote::Held(Incumbent::default()), None);
            }
            Some(_) if ours && self.uncounted => {
                return (Vote::Failed(Fault::Uncounted("lost".into())), None);
            }
            Some(Fence::Raise { to, .. }) => {
                self.counter = self.counter.max(to);
                return (Vote::Granted, None);
            }
            Some(Fence::Propose(proposal)) if ours => {
                fresh.number = fencing::next(self.counter, proposal).unwrap();
                let key = *self.key.get_or_insert(fresh);
                self.counter = self.counter.max(key.number);
                return (Vote::Granted, Some(key.number));
            }
            Some(Fence::Propose(_)) | None => {}
        }
        (self.act(holder, act, fresh, late), None)
    }

    fn act(&mut self, holder: usize, act: Act, fresh: Key, late: bool) -> Vote {
        let expires = fresh.expires;
        match (self.key, act) {
            (Some(key), _) if key.holder != holder => Vote::Held(Incumbent::default()),
            (Some(key), Act::Renew | Act::Heal) => {
                if expires > key.expires {
                    self.key = Some(Key { expires, prolonged: key.prolonged || late, ..key });
                }
                Vote::Granted
            }
            (Some(_), Act::Claim | Act::Watch | Act::Raise) => Vote::Granted,
            (Some(_), Act::Release) => {
                self.key = None;
                Vote::Granted
            }
            (None, Act::Raise | Act::Renew | Act::Release) => Vote::Absent,
            (None, Act::Claim | Act::Watch | Act::Heal) => {
                self.key = Some(fresh);
                Vote::Granted
            }
            (_, Act::QueueUp | Act::Overtake | Act::Leave) => unreachable!("no claim does it"),
        }
    }
}
