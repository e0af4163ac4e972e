//! Which masters there are, and how many of them make a decision.

use std::fmt;

/// The most masters one lock may have. Redlock is made for five; a set of them fits one word.
pub const MOST_MASTERS: usize = 32;

/// One of the configured masters, by its place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MasterId(u8);

impl MasterId {
    /// The master at `index` of the configured list, counted from zero; `None` from [`MOST_MASTERS`] on.
    #[must_use]
    pub const fn new(index: usize) -> Option<Self> {
        if index < MOST_MASTERS { Some(Self(index as u8)) } else { None }
    }

    /// The place in the configured list, counted from zero.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// `m1` is the first.
impl fmt::Display for MasterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0 + 1)
    }
}

/// A set of masters.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MasterSet(u32);

impl MasterSet {
    /// No master.
    pub const EMPTY: Self = Self(0);

    /// The set with `master` added.
    #[must_use]
    pub const fn with(self, master: MasterId) -> Self {
        Self(self.0 | 1 << master.0)
    }

    /// The set with `master` removed.
    #[must_use]
    pub const fn without(self, master: MasterId) -> Self {
        Self(self.0 & !(1 << master.0))
    }

    /// Whether `master` is in the set.
    #[must_use]
    pub const fn contains(self, master: MasterId) -> bool {
        self.0 & 1 << master.0 != 0
    }

    /// How many masters are in the set.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether no master is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Takes the first master out.
    pub const fn pop(&mut self) -> Option<MasterId> {
        if self.0 == 0 {
            return None;
        }
        let first = MasterId(self.0.trailing_zeros() as u8);
        *self = self.without(first);
        Some(first)
    }
}

impl Iterator for MasterSet {
    type Item = MasterId;

    fn next(&mut self) -> Option<MasterId> {
        self.pop()
    }
}

impl FromIterator<MasterId> for MasterSet {
    fn from_iter<I: IntoIterator<Item = MasterId>>(masters: I) -> Self {
        masters.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Debug for MasterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.map(|master| master.to_string())).finish()
    }
}

impl fmt::Display for MasterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, master) in self.enumerate() {
            write!(f, "{}{master}", if nth == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// N masters, w of which must agree. Any two quorums share a master: 2w > N.
///
/// N counts the *configured* masters. One that is down or in quarantine is a master that says no; leaving it out
/// of the count would let two halves of a fleet decide apart from each other (hazards H11, H13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quorum {
    masters: u8,
    needed: u8,
}

impl Quorum {
    /// The plain majority of `masters`.
    ///
    /// # Errors
    ///
    /// If there is no master, or more than [`MOST_MASTERS`].
    pub const fn majority(masters: usize) -> Result<Self, QuorumError> {
        match masters {
            0 => Err(QuorumError::NoMasters),
            1..=MOST_MASTERS => Ok(Self { masters: masters as u8, needed: (masters / 2 + 1) as u8 }),
            _ => Err(QuorumError::TooManyMasters { masters }),
        }
    }

    /// The same masters with `votes` needed. w = 4 of 5, used by every client of the fleet, stays exclusive even
    /// if two masters forget a vote, since 2w − N > f (safety of "more votes", hazards H14 to H20).
    ///
    /// # Errors
    ///
    /// If `votes` is below the majority or above the number of masters.
    pub const fn with_min_votes(self, votes: usize) -> Result<Self, QuorumError> {
        let masters = self.masters as usize;
        let majority = masters / 2 + 1;
        if votes < majority || votes > masters {
            return Err(QuorumError::Votes { votes, majority, masters });
        }
        Ok(Self { needed: votes as u8, ..self })
    }

    /// N.
    #[must_use]
    pub const fn masters(self) -> usize {
        self.masters as usize
    }

    /// w.
    #[must_use]
    pub const fn needed(self) -> usize {
        self.needed as usize
    }

    /// How many masters may be down while a lock can still be had.
    #[must_use]
    pub const fn spare(self) -> usize {
        self.masters() - self.needed()
    }

    /// How many masters saying no make a win impossible: N − w + 1.
    #[must_use]
    pub const fn blocking(self) -> usize {
        self.spare() + 1
    }

    /// All masters.
    #[must_use]
    pub fn everyone(self) -> MasterSet {
        (0..self.masters).map(MasterId).collect()
    }
}

/// Why a quorum cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuorumError {
    /// The list of masters is empty.
    NoMasters,
    /// The list is longer than [`MOST_MASTERS`].
    TooManyMasters {
        /// How many were given.
        masters: usize,
    },
    /// `min_votes` lies outside majority..=masters.
    Votes {
        /// The votes asked for.
        votes: usize,
        /// The least that is exclusive.
        majority: usize,
        /// How many masters there are.
        masters: usize,
    },
}

impl fmt::Display for QuorumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoMasters => write!(f, "no masters given: name five independent Redis or Valkey masters"),
            Self::TooManyMasters { masters } => {
                write!(f, "{masters} masters given: at most {MOST_MASTERS}, and five is the usual number")
            }
            Self::Votes { votes, majority, masters } => write!(
                f,
                "min_votes({votes}) does not fit {masters} masters: choose {majority} (the majority) to {masters}"
            ),
        }
    }
}

impl std::error::Error for QuorumError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_majority_of_one_to_five_is_one_two_two_three_three() {
        let needed: Vec<_> =
            (1..=5).map(|n| Quorum::majority(n).map(Quorum::needed).unwrap_or_default()).collect();
        assert_eq!(needed, [1, 2, 2, 3, 3]); // case B14
        assert_eq!(Quorum::majority(0), Err(QuorumError::NoMasters));
        assert!(Quorum::majority(33).is_err());
    }

    #[test]
    fn any_two_quorums_of_the_same_size_meet() {
        for masters in 1..=MOST_MASTERS {
            let quorum = Quorum::majority(masters).expect("1..=32 masters");
            for votes in 0..=masters + 1 {
                match quorum.with_min_votes(votes) {
                    Ok(raised) => {
                        assert!(2 * raised.needed() > masters);
                        assert_eq!(raised.needed() + raised.blocking(), masters + 1);
                    }
                    Err(_) => assert!(2 * votes <= masters || votes > masters),
                }
            }
        }
    }

    #[test]
    fn a_set_yields_each_master_once_in_order() {
        let five = Quorum::majority(5).expect("five").everyone();
        assert_eq!(five.to_string(), "m1, m2, m3, m4, m5");
        let second = MasterId::new(1).expect("in range");
        assert_eq!(five.without(second).len(), 4);
        assert!(!five.without(second).contains(second));
        assert_eq!(five.without(second).with(second), five);
    }
}
