//! What MONITOR tells of how others lock: P1, P2, P3 and P4 by key.
//!
//! A key counts as a lock once it was seen to be claimed (`SETNX`, `SET … NX`), or if it was named. What scripts do is atomic, and
//! never blamed.

use std::cell::RefCell;
use std::collections::BTreeMap;

use quorlock::Overheard;

use crate::output::count;

/// The most keys that are followed; others are counted.
const KEYS: usize = 4096;
/// Longer keys are not followed.
const LONGEST: usize = 512;
/// The most readers of one key that are remembered.
const READERS: usize = 16;

/// What was done to keys, on all masters together.
#[derive(Default)]
pub(crate) struct Ear {
    heard: RefCell<Heard>,
}

#[derive(Default)]
struct Heard {
    keys: BTreeMap<(u32, Vec<u8>), Story>,
    not_followed: usize,
}

/// What was done to one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Story {
    is_lock: bool,
    /// By master and client: read, not deleted since; and whether others claimed it in between.
    readers: Vec<(usize, String, bool)>,
    /// Who has it in a `WATCH`, which makes a GET and a DEL one transaction.
    watchers: Vec<(usize, String)>,
    /// By master: who claimed it without an expiry.
    bare_claim: BTreeMap<usize, String>,
    pub(crate) deleted_unread: usize,
    pub(crate) read_then_deleted: usize,
    /// Of which others claimed it in between.
    overtaken: usize,
    pub(crate) expired_apart: usize,
    pub(crate) claimed_without_expiry: usize,
    pub(crate) renewed_blindly: usize,
}

/// A lock that somebody treats badly.
pub(crate) struct Blame {
    pub(crate) key: Vec<u8>,
    pub(crate) story: Story,
}

impl Ear {
    pub(crate) fn hear(&self, master: usize, said: &Overheard) {
        let mut heard = self.heard.borrow_mut();
        let words = &said.arguments;
        let keys: &[Vec<u8>] = match said.command.as_str() {
            "GET" | "SET" | "SETNX" | "GETDEL" | "EXPIRE" | "PEXPIRE" | "EXPIREAT" | "PEXPIREAT" => {
                words.get(..1).unwrap_or_default()
            }
            "DEL" | "UNLINK" | "WATCH" => words,
            "UNWATCH" | "EXEC" | "DISCARD" => {
                if let Some(client) = &said.client {
                    heard.keys.values_mut().for_each(|story| story.unwatch(master, client));
                }
                return;
            }
            _ => return,
        };
        for key in keys {
            let id = (said.database, key.clone());
            if key.len() > LONGEST || heard.keys.len() >= KEYS && !heard.keys.contains_key(&id) {
                heard.not_followed += 1;
                continue;
            }
            heard.keys.entry(id).or_default().hear(master, said.client.as_deref(), &said.command, words);
        }
    }

    /// How many commands were about keys that are not followed.
    pub(crate) fn not_followed(&self) -> usize {
        self.heard.borrow().not_followed
    }

    /// The locks that somebody treats badly.
    pub(crate) fn blames(&self, named: &[Vec<u8>]) -> Vec<Blame> {
        let heard = self.heard.borrow();
        let blamed = heard
            .keys
            .iter()
            .filter(|((_, key), story)| (story.is_lock || named.contains(key)) && story.is_bad());
        blamed.map(|((_, key), story)| Blame { key: key.clone(), story: story.clone() }).collect()
    }

    /// How many locks were heard of.
    pub(crate) fn locks(&self) -> usize {
        self.heard.borrow().keys.values().filter(|story| story.is_lock).count()
    }
}

impl Story {
    const fn is_bad(&self) -> bool {
        self.deleted_unread + self.read_then_deleted + self.claimed_without_expiry + self.renewed_blindly > 0
    }

    fn hear(&mut self, master: usize, client: Option<&str>, command: &str, words: &[Vec<u8>]) {
        match (command, client) {
            ("SET" | "SETNX", _) => self.set(master, client, command, words),
            // A script's.
            (_, None) => {}
            ("GET", Some(client)) => {
                self.readers.retain(|(at, who, _)| (*at, who.as_str()) != (master, client));
                if self.readers.len() >= READERS {
                    self.readers.remove(0);
                }
                self.readers.push((master, client.to_owned(), false));
            }
            ("WATCH", Some(client)) => {
                self.unwatch(master, client);
                self.watchers.truncate(READERS - 1);
                self.watchers.push((master, client.to_owned()));
            }
            ("DEL" | "UNLINK" | "GETDEL", Some(client)) => self.delete(master, client),
            // EXPIRE in any of its forms.
            (_, Some(client)) => {
                if self.bare_claim.get(&master).is_some_and(|by| by == client) {
                    self.bare_claim.remove(&master);
                    self.expired_apart += 1;
                } else {
                    self.renewed_blindly += 1;
                }
            }
        }
    }

    fn set(&mut self, master: usize, client: Option<&str>, command: &str, words: &[Vec<u8>]) {
        let has = |options: &[&str]| {
            words.iter().skip(2).any(|word| options.iter().any(|o| word.eq_ignore_ascii_case(o.as_bytes())))
        };
        let claims = command == "SETNX" || has(&["NX"]);
        if !claims {
            return;
        }
        self.is_lock = true;
        for (at, who, overtaken) in &mut self.readers {
            *overtaken |= *at == master && client != Some(who);
        }
        if let Some(client) = client
            && !has(&["EX", "PX", "EXAT", "PXAT"])
        {
            self.claimed_without_expiry += 1;
            self.bare_claim.insert(master, client.to_owned());
        }
    }

    fn delete(&mut self, master: usize, client: &str) {
        self.bare_claim.remove(&master);
        let is = |at: usize, who: &str| (at, who) == (master, client);
        if self.watchers.iter().any(|(at, who)| is(*at, who)) {
            return;
        }
        match self.readers.iter().position(|(at, who, _)| is(*at, who)) {
            Some(reader) => {
                let (_, _, overtaken) = self.readers.remove(reader);
                self.read_then_deleted += 1;
                self.overtaken += usize::from(overtaken);
            }
            None => self.deleted_unread += 1,
        }
    }

    fn unwatch(&mut self, master: usize, client: &str) {
        self.watchers.retain(|(at, who)| (*at, who.as_str()) != (master, client));
    }

    /// In words, for the pitfall with that number; nothing if it is not that one.
    pub(crate) fn about(&self, pitfall: u8) -> Option<String> {
        match pitfall {
            1 if self.deleted_unread > 0 => Some(format!(
                "deleted by DEL without a look at whose it is, {}",
                count(self.deleted_unread, "time")
            )),
            2 if self.renewed_blindly > 0 => Some(format!(
                "given more time by EXPIRE without a look at whose it is, {}",
                count(self.renewed_blindly, "time")
            )),
            3 if self.claimed_without_expiry > 0 => Some(format!(
                "claimed without an expiry, {}, of which {} got one by a second command",
                count(self.claimed_without_expiry, "time"),
                self.expired_apart
            )),
            4 if self.read_then_deleted > 0 => {
                let overtaken = match self.overtaken {
                    0 => String::new(),
                    times => {
                        format!(", of which somebody else claimed it in between {}", count(times, "time"))
                    }
                };
                Some(format!(
                    "released by GET, then DEL, {}{overtaken}",
                    count(self.read_then_deleted, "time")
                ))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `client: COMMAND words`, a line each; `lua` is a script.
    fn listen(lines: &str) -> Ear {
        let ear = Ear::default();
        for line in lines.lines() {
            let (client, rest) = line.trim().split_once(": ").expect("client: COMMAND words");
            let (command, words) = rest.split_once(' ').unwrap_or((rest, ""));
            let client = (client != "lua").then(|| client.to_owned());
            let arguments = words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            ear.hear(0, &Overheard { client, database: 0, command: command.to_owned(), arguments });
        }
        ear
    }

    fn said(lines: &str, pitfall: u8) -> Option<String> {
        listen(lines).blames(&[]).first().and_then(|blame| blame.story.about(pitfall))
    }

    #[test]
    fn each_pitfall_is_told_from_the_others() {
        let none = |lines: &str| listen(lines).blames(&[]).is_empty();
        let bare = "a: SET k v NX PX 100\nb: DEL k";
        assert!(said(bare, 1).is_some() && said(bare, 4).is_none());
        let halves = "a: SETNX k 1\na: EXPIRE k 10";
        assert!(
            said(halves, 3).is_some_and(|said| said.contains("of which 1 got")) && said(halves, 2).is_none()
        );
        assert!(said("a: SET k 1 nx", 3).is_some_and(|said| said.contains("of which 0 got")));
        let steps = "a: SET k v NX PX 100\na: GET k\na: DEL k";
        assert!(said(steps, 4).is_some_and(|said| !said.contains("in between")) && said(steps, 1).is_none());
        let overtaken = "a: SET k v NX PX 100\na: GET k\nb: SET k w NX PX 100\na: UNLINK k";
        assert!(said(overtaken, 4).is_some_and(|said| said.contains("in between")));
        let blind = "a: SET k v NX PX 100\na: PEXPIRE k 100";
        assert!(said(blind, 2).is_some() && said(blind, 3).is_none());
        assert!(none("a: SET k v NX PX 100\nlua: GET k\nlua: DEL k\nlua: PEXPIRE k 100"));
        assert!(none("a: SET k v\na: GET k\na: DEL k"), "no lock");
        assert!(
            none("a: SET k v NX PX 100\na: WATCH k\na: GET k\na: MULTI\na: DEL k\na: EXEC"),
            "one transaction"
        );
        assert!(!none("a: SET k v NX PX 100\na: WATCH k\na: UNWATCH\na: GET k\na: DEL k"));
    }

    #[test]
    fn one_who_read_is_not_blamed_for_another_who_deletes() {
        let lines = "a: SET k v NX PX 100\na: GET k\nb: DEL k";
        assert!(said(lines, 1).is_some() && said(lines, 4).is_none());
    }

    #[test]
    fn keys_and_readers_are_bounded() {
        let ear = Ear::default();
        let hear = |client: String, command: &str, key: String| {
            let arguments = vec![key.into_bytes(), b"v".to_vec()];
            ear.hear(0, &Overheard { client: Some(client), database: 0, command: command.into(), arguments });
        };
        for nth in 0..KEYS + 10 {
            hear("a".into(), "SETNX", format!("k{nth:05}"));
            hear(format!("c{nth}"), "GET", "k00000".into());
        }
        hear("a".into(), "SETNX", "x".repeat(LONGEST + 1));
        assert_eq!((ear.locks(), ear.not_followed()), (KEYS, 11));
        let heard = ear.heard.borrow();
        assert!(heard.keys.values().all(|story| story.readers.len() <= READERS));
    }
}
