//! A master as a value: one key, and what the scripts do with it.

use quorlock::protocol::fanout::{Act, Fence};
use quorlock::protocol::fencing;
use quorlock::protocol::votes::{Fault, Incumbent, Vote};

use super::row::{Habit, Row};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) holder: u8,
    pub(crate) expires: u64,
    /// Prolonged by a renewal on which its client had given up: left to its ttl.
    pub(crate) prolonged: bool,
    /// Set by a command whose connection had broken.
    pub(crate) late: bool,
    /// What it took of the counter, or has for a token; zero for a plain key.
    pub(crate) number: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Master {
    pub(crate) key: Option<Key>,
    /// Which process this is, counted from the first.
    pub(crate) run: u8,
    /// Until when it casts no vote, since it may have forgotten.
    pub(crate) quarantine: u64,
    pub(crate) counter: u64,
    /// Whether it may have lost its counter, and what it was told to go on from.
    pub(crate) uncounted: bool,
    pub(crate) told: Option<u64>,
    /// How many attempts had begun when it restarted last.
    pub(crate) begun: usize,
}

/// One command as the master gets it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub(crate) act: Act,
    pub(crate) fence: Option<Fence>,
    pub(crate) holder: u8,
    /// When the key ends, counted from now.
    pub(crate) ttl: u64,
    /// Whether the client has given it up.
    pub(crate) given_up: bool,
    /// Whether its connection has broken.
    pub(crate) late: bool,
    /// Whether it compared before, and deletes now.
    pub(crate) looked: bool,
    /// Whether the question of quarantine was settled before.
    pub(crate) admitted: bool,
}

impl Master {
    pub(crate) fn pass_time(&mut self, now: u64) {
        self.key = self.key.filter(|key| now < key.expires);
        if now >= self.quarantine {
            self.quarantine = 0;
        }
    }

    pub(crate) fn restart(&mut self, keeps: bool, quarantine: u64) {
        self.key = self.key.filter(|_| keeps);
        self.counter = if keeps { self.counter } else { 0 };
        (self.uncounted, self.told) = (true, None);
        self.run += 1;
        self.quarantine = quarantine;
    }

    pub(crate) fn execute(&mut self, row: &Row, command: Command, now: u64) -> (Vote, Option<u64>) {
        let Command { act, holder, .. } = command;
        if act.votes() && self.quarantine > 0 && !command.admitted {
            return (Vote::Failed(Fault::Quarantined(Default::default())), None);
        }
        let expires = now + command.ttl;
        let created = Key { holder, expires, prolonged: false, late: command.late, number: 0 };
        if let Some(fence) = command.fence
            && let Some(said) = self.count(row, fence, holder, created)
        {
            return said;
        }
        let Some(key) = &mut self.key else {
            if !act.creates() {
                return (Vote::Absent, None);
            }
            self.key = Some(created);
            return (Vote::Granted, None);
        };
        match act {
            Act::Claim | Act::Watch | Act::Raise => return (Vote::Held(Incumbent::default()), None),
            Act::Renew if row.has(Habit::RenewsBySet) => *key = created,
            Act::Renew if row.has(Habit::RenewsBlindly) => key.expires = key.expires.max(expires),
            Act::Release if row.has(Habit::DeletesBlindly) || command.looked => self.key = None,
            _ if key.holder != holder => return (Vote::Held(Incumbent::default()), None),
            Act::Renew if row.has(Habit::RenewsDownwards) => key.expires = expires,
            Act::Renew | Act::Heal => {
                key.prolonged |= command.given_up && act == Act::Renew && expires > key.expires;
                key.expires = key.expires.max(expires);
            }
            Act::Release => self.key = None,
            Act::QueueUp | Act::Overtake | Act::Leave => unreachable!("no claim does it"),
        }
        (Vote::Granted, None)
    }

    /// What there is to do with the counter; `None` if the rest is as for a plain key.
    fn count(&mut self, row: &Row, fence: Fence, holder: u8, created: Key) -> Option<(Vote, Option<u64>)> {
        let key = self.key;
        let ours = key.is_none_or(|key| key.holder == holder);
        match fence {
            Fence::Raise { to, .. } if row.has(Habit::RaisesBlindly) => {
                self.counter = self.counter.max(to);
                Some((Vote::Granted, None))
            }
            Fence::Raise { .. } if key.is_none() => Some((Vote::Absent, None)),
            Fence::Raise { seen, .. }
                if !ours || !row.has(Habit::RaisesByHolder) && key.is_some_and(|key| key.number != seen) =>
            {
                Some((Vote::Held(Incumbent::default()), None))
            }
            Fence::Restore(token) => {
                if ours && !self.uncounted {
                    self.counter = self.counter.max(token.as_u64());
                }
                if key.is_none() {
                    self.key = Some(Key { number: token.as_u64(), ..created });
                }
                None
            }
            Fence::Propose(_) if !ours => None,
            _ if self.uncounted => Some((Vote::Failed(Fault::Uncounted("lost".into())), None)),
            Fence::Raise { to, .. } => {
                self.counter = self.counter.max(to);
                Some((Vote::Granted, None))
            }
            Fence::Propose(proposal) => {
                let number = match key {
                    Some(key) => key.number,
                    None => fencing::next(self.counter, proposal).expect("small numbers"),
                };
                self.counter = self.counter.max(number);
                self.key = key.or(Some(Key { number, ..created }));
                Some((Vote::Granted, Some(number)))
            }
        }
    }
}
