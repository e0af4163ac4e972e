//! What the masters answered. Nothing here judges.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::fanout::Link;
use super::quorum::{MasterId, MasterSet, Quorum};
use super::request::printable;

/// One master's answer.
///
/// The difference between `Failed` and `Unknown` decides what is cleaned up: after `Failed` nothing of this command
/// can be on the master, after `Unknown` it may be there, or arrive later.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Vote {
    /// Yes: the key is ours.
    Granted,
    /// No: the key is somebody else's.
    Held(Incumbent),
    /// There is no key; the answer of a renewal or release.
    Absent,
    /// The command was certainly not applied.
    Failed(Fault),
    /// The command may have been applied, or may yet be.
    Unknown(Fault),
}

/// A vote and the connection it came by, if the command reached one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reply {
    /// The answer.
    pub vote: Vote,
    /// The connection that carried the command.
    pub link: Option<Link>,
    /// With a grant: the number that the key took, to a claim that is fenced; how many stand before one in line.
    pub number: Option<u64>,
}

impl Reply {
    /// The reply of a command that was certainly never sent.
    #[must_use]
    pub const fn unsent(fault: Fault) -> Self {
        Self { vote: Vote::Failed(fault), link: None, number: None }
    }
}

/// Who holds a key, as far as the master told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Incumbent {
    /// Which of a lock's several resources this is; `None` for the one of a lock on one.
    pub resource: Option<Box<[u8]>>,
    /// The value of the key; `None` if not asked, or if the key is no string.
    pub holder: Option<Box<[u8]>>,
    /// How long the key will stay.
    pub remaining: Remaining,
}

/// The remaining time of a key, ordered by how long it stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Remaining {
    /// Not asked.
    #[default]
    Untold,
    /// This long, as the master's clock counts.
    For(Duration),
    /// The key has no ttl and never expires by itself (pitfall 3: SETNX without EXPIRE).
    Forever,
}

/// Why a master did not answer yes or no. Texts are the master's or the system's own words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// There is no connection to the master; the reason of the last try.
    NotConnected(Arc<str>),
    /// The master may have forgotten votes, and abstains for this long (hazard H15).
    Quarantined(Duration),
    /// The master may have forgotten its fencing counters, and takes no part in fencing until it has them again.
    Uncounted(Arc<str>),
    /// The master answered with an error.
    Refused(Arc<str>),
    /// Too much waits for this master already.
    Overloaded,
    /// The command was taken back before it was sent.
    Withdrawn,
    /// The client is closed.
    Closed,
    /// No answer within the time limit.
    TimedOut,
    /// The connection broke before the answer.
    Broken(Arc<str>),
    /// The answer makes no sense.
    Unintelligible(Arc<str>),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected(why) => write!(f, "unreachable: {why}"),
            Self::Quarantined(left) => write!(
                f,
                "abstains for {:.1} s more, since it may have forgotten locks (first start? quorlock init)",
                left.as_secs_f64()
            ),
            Self::Uncounted(why) => write!(f, "takes no part in fencing: {why}"),
            Self::Refused(words) => write!(f, "refused: {words}"),
            Self::Overloaded => write!(f, "too many commands wait for it"),
            Self::Withdrawn => write!(f, "not asked in time"),
            Self::Closed => write!(f, "the client is closed"),
            Self::TimedOut => write!(f, "no answer in time"),
            Self::Broken(why) => write!(f, "connection broke: {why}"),
            Self::Unintelligible(what) => write!(f, "answered nonsense: {what}"),
        }
    }
}

impl fmt::Display for Incumbent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(resource) = &self.resource {
            write!(f, "{:?} ", printable(resource))?;
        }
        match &self.holder {
            Some(holder) => write!(f, "held by {}", printable(holder))?,
            None => write!(f, "held by another")?,
        }
        match self.remaining {
            Remaining::Untold => Ok(()),
            Remaining::For(left) => write!(f, " for {:.1} s more", left.as_secs_f64()),
            Remaining::Forever => write!(f, " without a ttl: it never expires by itself, delete it by hand"),
        }
    }
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted => write!(f, "granted"),
            Self::Held(incumbent) => incumbent.fmt(f),
            Self::Absent => write!(f, "has no such key"),
            Self::Failed(fault) | Self::Unknown(fault) => fault.fmt(f),
        }
    }
}

/// Who said what in one fan-out, in the order of the configured masters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    quorum: Quorum,
    votes: Box<[Option<Vote>]>,
}

impl Tally {
    /// The votes of the masters of `quorum`, `None` for one that has not answered.
    pub fn new(quorum: Quorum, votes: impl IntoIterator<Item = Option<Vote>>) -> Self {
        Self { quorum, votes: votes.into_iter().take(quorum.masters()).collect() }
    }

    /// The quorum the votes were for.
    #[must_use]
    pub const fn quorum(&self) -> Quorum {
        self.quorum
    }

    /// What `master` said; `None` if it had not answered when the verdict fell.
    #[must_use]
    pub fn vote(&self, master: MasterId) -> Option<&Vote> {
        self.votes.get(master.index())?.as_ref()
    }

    /// Each master with its vote.
    pub fn iter(&self) -> impl Iterator<Item = (MasterId, Option<&Vote>)> {
        self.quorum.everyone().map(|master| (master, self.vote(master)))
    }

    /// The masters that granted.
    #[must_use]
    pub fn granted(&self) -> MasterSet {
        self.those(|vote| matches!(vote, Some(Vote::Granted)))
    }

    /// The masters on which somebody else's key stands.
    #[must_use]
    pub fn held(&self) -> MasterSet {
        self.those(|vote| matches!(vote, Some(Vote::Held(_))))
    }

    /// The masters that certainly did not apply the command.
    #[must_use]
    pub fn failed(&self) -> MasterSet {
        self.those(|vote| matches!(vote, Some(Vote::Failed(_))))
    }

    /// The masters of which nobody can tell, those without an answer included.
    #[must_use]
    pub fn unknown(&self) -> MasterSet {
        self.those(|vote| matches!(vote, None | Some(Vote::Unknown(_))))
    }

    fn those(&self, which: impl Fn(Option<&Vote>) -> bool) -> MasterSet {
        self.iter().filter(|(_, vote)| which(*vote)).map(|(master, _)| master).collect()
    }

    /// Whether w masters voted: without somebody else's keys it would be won, whatever the others do.
    #[must_use]
    pub fn is_in_reach(&self) -> bool {
        self.granted().len() + self.held().len() >= self.quorum.needed()
    }

    /// When, at the earliest, enough masters may be free: the least wait after which w of them granted, were `freed`
    /// since, or have seen the key expire. `None` if that was not told, or never happens by itself.
    ///
    /// A master that is silent is not taken for a free one: it could not grant, and counting it would have those who
    /// wait ask again and again for as long as it is down.
    #[must_use]
    pub fn free_in(&self, freed: MasterSet) -> Option<Duration> {
        let free = self.granted().fold(freed, MasterSet::with);
        let missing = self.quorum.needed().saturating_sub(free.len());
        if missing == 0 {
            return Some(Duration::ZERO);
        }
        let mut waits: Vec<Duration> = self
            .iter()
            .filter_map(|(master, vote)| match vote {
                Some(Vote::Held(Incumbent { remaining: Remaining::For(left), .. })) => {
                    (!free.contains(master)).then_some(*left)
                }
                _ => None,
            })
            .collect();
        waits.sort_unstable();
        waits.get(missing - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(millis: u64) -> Option<Vote> {
        let remaining = Remaining::For(Duration::from_millis(millis));
        let holder = Some(b"web-3:1842/x".as_slice().into());
        Some(Vote::Held(Incumbent { holder, remaining, ..Incumbent::default() }))
    }

    #[test]
    fn enough_masters_are_free_when_the_last_one_needed_expires() {
        let five = Quorum::majority(5).expect("five");
        let tally = |votes: [Option<Vote>; 5]| Tally::new(five, votes);
        let none = MasterSet::EMPTY;
        let millis = |millis| Some(Duration::from_millis(millis));
        let all_held = tally([held(50), held(10), held(40), held(30), held(20)]);
        assert_eq!(all_held.free_in(none), millis(30));
        assert_eq!(tally([held(50), held(10), Some(Vote::Granted), None, None]).free_in(none), millis(50));
        assert_eq!(tally([held(50), None, None, None, None]).free_in(none), None);
        let forever = Some(Vote::Held(Incumbent { remaining: Remaining::Forever, ..Incumbent::default() }));
        let three_forever = tally([forever.clone(), forever.clone(), forever, held(5), held(9)]);
        assert_eq!(three_forever.free_in(none), None);

        // Freed since: these no longer keep anybody waiting, and none counts twice.
        let freed = |masters: &[usize]| masters.iter().filter_map(|master| MasterId::new(*master)).collect();
        assert_eq!(all_held.free_in(freed(&[1])), millis(30));
        assert_eq!(all_held.free_in(freed(&[0])), millis(20));
        assert_eq!(all_held.free_in(freed(&[0, 2, 3])), millis(0));
        assert_eq!(three_forever.free_in(freed(&[0])), millis(9));
        // A silent master is not a free one.
        assert_eq!(tally([held(50), held(10), held(40), None, None]).free_in(freed(&[0])), millis(40));
    }

    #[test]
    fn a_vote_reads_as_a_sentence() {
        let vote = held(1_500).expect("some");
        assert_eq!(vote.to_string(), "held by web-3:1842/x for 1.5 s more");
        let forever = Incumbent { remaining: Remaining::Forever, ..Incumbent::default() };
        assert!(forever.to_string().contains("never expires"));
        let one_of_several = Incumbent { resource: Some(b"b".as_slice().into()), ..forever };
        assert!(one_of_several.to_string().starts_with("\"b\" held by another without a ttl"));
    }
}
