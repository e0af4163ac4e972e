//! A master as a value: one key, and what the scripts do with it.

use quorlock::protocol::fanout::Act;
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
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Master {
    pub(crate) key: Option<Key>,
    /// Which process this is, counted from the first.
    pub(crate) run: u8,
    /// Until when it casts no vote, since it may have forgotten.
    pub(crate) quarantine: u64,
}

/// One command as the master gets it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub(crate) act: Act,
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
        self.run += 1;
        self.quarantine = quarantine;
    }

    pub(crate) fn execute(&mut self, row: &Row, command: Command, now: u64) -> Vote {
        let Command { act, holder, .. } = command;
        if act.votes() && self.quarantine > 0 && !command.admitted {
            return Vote::Failed(Fault::Quarantined(Default::default()));
        }
        let expires = now + command.ttl;
        let created = Key { holder, expires, prolonged: false, late: command.late };
        let Some(key) = &mut self.key else {
            if !act.creates() {
                return Vote::Absent;
            }
            self.key = Some(created);
            return Vote::Granted;
        };
        match act {
            Act::Claim | Act::Watch | Act::Raise => return Vote::Held(Incumbent::default()),
            Act::Renew if row.has(Habit::RenewsBySet) => *key = created,
            Act::Renew if row.has(Habit::RenewsBlindly) => key.expires = key.expires.max(expires),
            Act::Release if row.has(Habit::DeletesBlindly) || command.looked => self.key = None,
            _ if key.holder != holder => return Vote::Held(Incumbent::default()),
            Act::Renew if row.has(Habit::RenewsDownwards) => key.expires = expires,
            Act::Renew | Act::Heal => {
                key.prolonged |= command.given_up && act == Act::Renew && expires > key.expires;
                key.expires = key.expires.max(expires);
            }
            Act::Release => self.key = None,
        }
        Vote::Granted
    }
}
