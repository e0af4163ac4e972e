//! What stands at one resource on all masters, and what that comes to.

use std::fmt;
use std::time::Duration;

use crate::protocol::policy::Policy;
use crate::protocol::quorum::Quorum;
use crate::protocol::request::printable;
use crate::protocol::votes::Remaining;

/// What stands at one resource on all masters, at about one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// N and w.
    pub quorum: Quorum,
    /// One a master, in the configured order.
    pub sightings: Vec<Sighting>,
}

/// What stands at one resource on one master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The master's address.
    pub master: String,
    /// The key, or why it could not be seen.
    pub key: Result<KeyState, String>,
    /// How long the answer took.
    pub round_trip: Duration,
    /// How long the master will abstain from voting; `None` if it votes, or nobody can tell.
    pub abstains: Option<Abstention>,
}

/// Why a master casts no vote at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abstention {
    /// It started lately and may have forgotten votes.
    Quarantined(Duration),
    /// No client has asked it to vote since it started.
    NeverAdmitted,
}

/// The state of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// There is none.
    Free,
    /// A string stands there.
    Held {
        /// Its value: the holder, without the fencing token.
        holder: Vec<u8>,
        /// The number behind the holder, of a fenced lock: its token, or what this master would have given.
        fence: Option<u64>,
        /// How long it will stay.
        remaining: Remaining,
    },
    /// A key of another type stands there; no lock of ours, and none of ours can be had.
    OtherType {
        /// How long it will stay.
        remaining: Remaining,
    },
}

/// What the sightings come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// w masters show one holder's key.
    Held {
        /// The holder.
        holder: Vec<u8>,
        /// Its fencing token, where w of its keys show the same; elsewhere they do not tell.
        fence: Option<u64>,
        /// On how many masters.
        votes: usize,
        /// How long w of them keep the key, drift subtracted; `None` if for ever.
        at_least: Option<Duration>,
    },
    /// So many masters, w or more, have a key there that is no string, so that no lock can be had.
    OtherType {
        /// On how many masters.
        votes: usize,
    },
    /// No master that can be seen has a key there, and these are w or more.
    Free,
    /// Keys stand on fewer than w masters: left by an attempt that failed, or one is under way.
    Leftovers {
        /// On how many masters.
        on: usize,
        /// Whether w masters are free all the same, so that the lock can be had.
        free: bool,
        /// Whether it is a held lock after all, if the masters that cannot be seen have that key too.
        may_be_held: bool,
        /// When the last of the keys expires; `None` if one never does.
        expire_in: Option<Duration>,
    },
    /// Keys of several holders stand there, none on w masters, and w masters are not free.
    Split {
        /// How many holders.
        holders: usize,
        /// When the last of the keys expires; `None` if one never does.
        expire_in: Option<Duration>,
    },
    /// Fewer than w masters can be seen.
    NoQuorum,
}

/// The keys of one holder, or all of another type.
struct Side<'a> {
    holder: Option<&'a [u8]>,
    fences: Vec<u64>,
    /// Longest first.
    lefts: Vec<Option<Duration>>,
}

impl Inspection {
    /// Judges the sightings.
    #[must_use]
    pub fn finding(&self, policy: &Policy) -> Finding {
        let needed = self.quorum.needed();
        let seen: Vec<&KeyState> =
            self.sightings.iter().filter_map(|sighting| sighting.key.as_ref().ok()).collect();
        if seen.len() < needed {
            return Finding::NoQuorum;
        }
        let sides = sides(&seen);
        let Some(most) = sides.iter().max_by_key(|side| side.lefts.len()) else { return Finding::Free };
        let votes = most.lefts.len();
        match most.holder {
            None if votes >= needed => return Finding::OtherType { votes },
            Some(holder) if votes >= needed => {
                let at_least = most.lefts[needed - 1].map(|left| left.saturating_sub(policy.drift(left)));
                return Finding::Held { holder: holder.to_vec(), fence: most.token(needed), votes, at_least };
            }
            _ => {}
        }
        let on: usize = sides.iter().map(|side| side.lefts.len()).sum();
        let free = seen.len() - on >= needed;
        let longest = |left: &Option<Duration>| left.unwrap_or(Duration::MAX);
        let last = sides.iter().flat_map(|side| side.lefts.iter().copied()).max_by_key(longest);
        let expire_in = last.flatten();
        if sides.len() > 1 && !free {
            return Finding::Split { holders: sides.len(), expire_in };
        }
        let unseen = self.quorum.masters() - seen.len();
        Finding::Leftovers { on, free, may_be_held: votes + unseen >= needed, expire_in }
    }
}

impl Side<'_> {
    /// What so many of its keys show, as each holds what its own master gave.
    fn token(&self, needed: usize) -> Option<u64> {
        let shown = |token: &&u64| self.fences.iter().filter(|other| other == token).count() >= needed;
        self.fences.iter().find(shown).copied()
    }
}

fn sides<'a>(seen: &[&'a KeyState]) -> Vec<Side<'a>> {
    let mut sides: Vec<Side<'_>> = Vec::new();
    for key in seen {
        let (holder, fence, remaining) = match key {
            KeyState::Free => continue,
            KeyState::Held { holder, fence, remaining } => (Some(holder.as_slice()), *fence, remaining),
            KeyState::OtherType { remaining } => (None, None, remaining),
        };
        let left = if let Remaining::For(left) = remaining { Some(*left) } else { None };
        match sides.iter_mut().find(|side| side.holder == holder) {
            Some(side) => {
                side.lefts.push(left);
                side.fences.extend(fence);
            }
            None => sides.push(Side { holder, fences: fence.into_iter().collect(), lefts: vec![left] }),
        }
    }
    for side in &mut sides {
        side.lefts.sort_by_key(|left| std::cmp::Reverse(left.unwrap_or(Duration::MAX)));
    }
    sides
}

impl KeyState {
    /// A string key, its value taken apart.
    pub(super) fn held(value: &[u8], remaining: Remaining) -> Self {
        let bar = value.iter().position(|byte| *byte == b'|');
        let parts = bar.map(|bar| (&value[..bar], &value[bar + 1..]));
        let token = |text: &[u8]| std::str::from_utf8(text).ok()?.parse().ok();
        match parts.and_then(|(holder, text)| Some((holder, token(text)?))) {
            Some((holder, token)) => Self::Held { holder: holder.to_vec(), fence: Some(token), remaining },
            None => Self::Held { holder: value.to_vec(), fence: None, remaining },
        }
    }
}

/// The holder as a person may read it.
impl fmt::Display for KeyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, remaining) = match self {
            Self::Free => return f.write_str("free"),
            Self::Held { holder, remaining, .. } => (printable(holder), remaining),
            Self::OtherType { remaining } => ("a key of another type".to_owned(), remaining),
        };
        match remaining {
            Remaining::For(left) => write!(f, "{what} for {:.1} s more", left.as_secs_f64()),
            Remaining::Forever => write!(f, "{what} without a ttl: it never expires by itself"),
            Remaining::Untold => f.write_str(&what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `x5` is holder x for 5 s more, `x` for ever, `.` free, `#` another type, `?` unseen.
    fn finding(keys: &str) -> Finding {
        let remaining = |text: &str| match text.parse() {
            Ok(seconds) => Remaining::For(Duration::from_secs(seconds)),
            Err(_) => Remaining::Forever,
        };
        let key = |text: &str| match text.split_at(1) {
            (".", _) => Ok(KeyState::Free),
            ("?", _) => Err("down".to_owned()),
            ("#", left) => Ok(KeyState::OtherType { remaining: remaining(left) }),
            (holder, left) => Ok(KeyState::held(holder.as_bytes(), remaining(left))),
        };
        let sightings: Vec<Sighting> = keys
            .split(' ')
            .map(|text| Sighting {
                master: String::new(),
                key: key(text),
                round_trip: Duration::ZERO,
                abstains: None,
            })
            .collect();
        let quorum = Quorum::majority(sightings.len()).expect("as many masters as there may be");
        Inspection { quorum, sightings }.finding(&Policy::new())
    }

    #[test]
    fn what_is_seen_comes_to_one_finding() {
        let s = Duration::from_secs;
        let held = |holder: &str, votes, at_least| Finding::Held {
            holder: holder.as_bytes().to_vec(),
            fence: None,
            votes,
            at_least,
        };
        let left = |on, free, may_be_held, expire_in| Finding::Leftovers { on, free, may_be_held, expire_in };
        assert_eq!(finding(". . . ? ?"), Finding::Free);
        assert_eq!(finding(". x9 ? ? ?"), Finding::NoQuorum);
        // The third longest, less 1 % and 2 ms.
        assert_eq!(finding("x9 x5 x x7 ."), held("x", 4, Some(Duration::from_millis(6_928))));
        assert_eq!(finding("x x x y9 y9"), held("x", 3, None));
        assert_eq!(finding("# # # . x9"), Finding::OtherType { votes: 3 });
        assert_eq!(finding("x9 x5 . . ."), left(2, true, false, Some(s(9))));
        assert_eq!(finding("x9 y . . ."), left(2, true, false, None));
        assert_eq!(finding("x9 x5 . . ?"), left(2, false, true, Some(s(9))));
        assert_eq!(finding("x9 . . ? ?"), left(1, false, true, Some(s(9))));
        assert_eq!(finding("x9 x8 y7 . ."), Finding::Split { holders: 2, expire_in: Some(s(9)) });
        assert_eq!(finding("x9 #5 y7 . ."), Finding::Split { holders: 3, expire_in: Some(s(9)) });
    }

    #[test]
    fn a_fenced_value_is_taken_apart_and_another_one_left_whole() {
        let held = |value: &[u8]| match KeyState::held(value, Remaining::Forever) {
            KeyState::Held { holder, fence, .. } => (holder, fence),
            other => panic!("{other:?}"),
        };
        assert_eq!(held(b"web:1/id|17"), (b"web:1/id".to_vec(), Some(17)));
        assert_eq!(held(b"web:1/id"), (b"web:1/id".to_vec(), None));
        assert_eq!(held(b"a|b"), (b"a|b".to_vec(), None));
        assert_eq!(held(b"a|1|2"), (b"a|1|2".to_vec(), None));
        assert_eq!(held(b"\xff|9"), (b"\xff".to_vec(), Some(9)));
    }
}
