//! Fencing tokens: a number with every hold, greater than those of all holds before it.
//!
//! A holder can be stopped (a pause, a migration, a full disk) past the end of its lease and not know it. What it
//! sends then must be refused by who receives it, and a number that only rises lets anybody do that: refuse what is
//! smaller than the greatest seen.
//!
//! # How the number is made without consensus
//!
//! Each master has a counter for the resource. A claim that creates the key takes `c = max(counter + 1, proposal)`,
//! stores it as the counter, and signs the key with `holder|c`: one *incarnation* of the key. A token `m` is won
//! once w masters each have an incarnation of ours with `c ≤ m` during which the counter was `m` or more. Mostly w
//! masters give the same `c`, and that is it, after one round. Where they differ, the counter is raised to `m` on
//! those that gave less, *while the key is still the incarnation that was read*, and only their confirmations count.
//!
//! Two holds X and Y share a master among their w. Keys of one master follow each other, so say X's was there first.
//! At its end the counter was `m_X` at least; Y's key took more than that; and `m_Y` is no less than what Y's key
//! took. So `m_X < m_Y`: different, and in the order of the holds, **whatever the clocks do**. A claim that fails
//! only wastes numbers. What is not enough (each was tried, and refuted by the search in `tests/model`): the greatest
//! or the least of w counters; raising without waiting; raising whatever key is there; confirmations of masters
//! whose counter was not read.
//!
//! A key that is *healed* (created anew while the lease holds) takes no number of its own: it is signed with the
//! token, and raises the counter to it. No hold counts such a key among its w, so the argument stands as it is; that
//! a counter was raised once more can only make numbers skip.
//!
//! The proposal is the client's wall clock in microseconds. The argument needs nothing of it; it makes the masters
//! agree in one round, and keeps tokens rising even where all counters were lost.
//!
//! # What must not be forgotten
//!
//! Counters do not expire, so a master that lost its own may not just wait: it takes no part in fencing until it
//! has the greatest of N − w + 1 others ([`recover`]), read after its quarantine, when every claim that its old
//! votes could have supported is over. A token is known to w masters, so at most N − w others lack it.

use std::collections::BTreeMap;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use super::mutant::{self, Mutant};
use super::quorum::Quorum;

/// How many counters a master has. Resources share them, so that they need a bounded room; a counter that another
/// resource raised makes tokens skip, nothing else.
pub const SHARDS: u16 = 1024;

/// The greatest number: above it, the scripts' arithmetic is not exact. In microseconds, the year 2255.
pub const GREATEST: u64 = (1 << 53) - 1;

/// How far ahead of a master's clock a proposal may be. One from a client whose clock is farther off is ignored: it
/// would use up numbers that every later token has to exceed.
pub const FARTHEST_PROPOSAL: u64 = 24 * 60 * 60 * 1_000_000;

/// The number of one hold on a resource. Later holds have greater ones; nothing else is to be read from it.
///
/// Hand it with each effect to whoever keeps the resource, and have the effect refused there if a greater one was
/// seen: [`Gate`](crate::fence::Gate) does so in memory, `WHERE token <= $1` in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// The token that another process was given.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number. Below 2^53, so it is exact in JSON and fits every signed 64-bit column.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for FencingToken {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

/// A master's counters, those that are not zero, by shard.
pub type Counters = BTreeMap<u16, u64>;

/// Which counter belongs to a resource: 32-bit FNV-1a, folded to ten bits. The same for every client of a fleet.
#[must_use]
pub fn shard(resource: &[u8]) -> u16 {
    let fold = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let hash = resource.iter().fold(0x811c_9dc5, fold);
    ((hash >> 10 ^ hash) % u32::from(SHARDS)) as u16
}

/// What a claim takes that creates the key; `None` where the numbers are used up.
#[must_use]
pub fn next(counter: u64, proposal: u64) -> Option<u64> {
    counter.checked_add(1).map(|next| next.max(proposal)).filter(|next| *next <= GREATEST)
}

/// How many other masters' counters a master must have that lost its own: N − w + 1.
#[must_use]
pub fn reads_to_recover(quorum: Quorum) -> usize {
    match quorum.blocking() {
        _ if mutant::on(Mutant::RecoverySkipped) => 0,
        reads if mutant::on(Mutant::RecoveryReadsTooFew) => reads - 1,
        reads => reads,
    }
}

/// The counters a master may go on with that lost its own, from those of `others` that never did or have recovered.
/// `None` if these are too few to be sure that the latest tokens are among them.
pub fn recover(quorum: Quorum, others: impl IntoIterator<Item = Counters>) -> Option<Counters> {
    let mut reads = 0;
    let mut greatest = Counters::new();
    for (shard, counter) in others.into_iter().inspect(|_| reads += 1).flatten() {
        let known = greatest.entry(shard).or_default();
        *known = counter.max(*known);
    }
    (reads >= reads_to_recover(quorum)).then_some(greatest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_spread_over_all_counters_and_always_in_the_same_way() {
        let mut hits = [0u32; SHARDS as usize];
        for nth in 0..102_400 {
            hits[usize::from(shard(format!("order:{nth}").as_bytes()))] += 1;
        }
        assert!(hits.iter().all(|hits| (40..220).contains(hits)), "{:?}", hits.iter().max());
        // Other clients of the fleet must find the same counter: these numbers are wire format.
        assert_eq!([b"order:123".as_slice(), b"a", b""].map(shard), [922, 550, 738]);
    }

    #[test]
    fn a_number_is_above_the_counter_and_no_less_than_the_proposal() {
        assert_eq!([next(0, 0), next(7, 3), next(7, 8), next(7, 900)], [1, 8, 8, 900].map(Some));
        assert_eq!(next(GREATEST - 1, 0), Some(GREATEST));
        assert_eq!([next(GREATEST, 0), next(0, GREATEST + 1), next(u64::MAX, 0)], [None; 3]);
    }

    #[test]
    fn recovery_takes_the_greatest_of_enough_others() {
        let five = Quorum::majority(5).expect("five");
        let counters = |pairs: &[(u16, u64)]| pairs.iter().copied().collect::<Counters>();
        let others = [counters(&[(1, 5), (2, 9)]), counters(&[(1, 7)]), counters(&[])];
        assert_eq!(recover(five, others[..2].to_vec()), None);
        assert_eq!(recover(five, others), Some(counters(&[(1, 7), (2, 9)])));
        let four = five.with_min_votes(4).expect("four of five");
        assert!(recover(four, [counters(&[]), counters(&[])]).is_some());
    }
}
