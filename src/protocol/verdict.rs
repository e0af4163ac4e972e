//! The judgement on a claim, as early as the votes allow.

use super::mutant::{self, Mutant};
use super::quorum::Quorum;

/// How a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// w masters granted before the deadline.
    Won,
    /// So many masters hold somebody else's key that no quorum is left.
    Contended,
    /// Too few masters answered yes or no; nobody else need hold the lock.
    NoQuorum,
    /// w masters granted, but the validity was over by then.
    TooLate,
}

/// The votes of a claim, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) granted: usize,
    pub(super) held: usize,
    /// `Failed` and `Unknown`: no vote, for whatever reason (hazard H10).
    pub(super) silent: usize,
}

impl Count {
    const fn pending(self, quorum: Quorum) -> usize {
        quorum.masters() - self.granted - self.held - self.silent
    }

    pub(super) fn won(self, quorum: Quorum) -> bool {
        let half = mutant::on(Mutant::HalfIsEnough);
        self.granted >= if half { quorum.masters() / 2 } else { quorum.needed() }
    }

    /// Whether w can no longer be reached: from here on the claim is only cleaned up.
    pub(super) const fn hopeless(self, quorum: Quorum) -> bool {
        self.granted + self.pending(quorum) < quorum.needed()
    }

    /// Why a hopeless claim failed, once that is settled.
    ///
    /// The cleaning up starts as soon as the claim is hopeless, but the verdict waits for the votes that tell "busy"
    /// from "out of reach": with two masters down and the lock held on the other three, the first refusal already
    /// makes the claim hopeless, and only the third shows that it is busy. A caller acts differently on the two.
    pub(super) const fn why_hopeless(self, quorum: Quorum) -> Option<Verdict> {
        if self.held >= quorum.blocking() {
            Some(Verdict::Contended)
        } else if self.held + self.pending(quorum) < quorum.blocking() {
            Some(Verdict::NoQuorum)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every count of 1 to 7 masters, against the definition by enumeration of what the pending ones might say.
    #[test]
    fn the_judgement_is_early_and_never_wrong() {
        for masters in 1..=7 {
            for needed in masters / 2 + 1..=masters {
                let quorum = Quorum::majority(masters).and_then(|q| q.with_min_votes(needed)).expect("valid");
                for granted in 0..=masters {
                    for held in 0..=masters - granted {
                        for silent in 0..=masters - granted - held {
                            check(quorum, Count { granted, held, silent });
                        }
                    }
                }
            }
        }
    }

    fn check(quorum: Quorum, count: Count) {
        let pending = count.pending(quorum);
        let ends = |f: &dyn Fn(Count) -> bool| {
            let mut all = (true, false);
            for yes in 0..=pending {
                for no in 0..=pending - yes {
                    let end = Count {
                        granted: count.granted + yes,
                        held: count.held + no,
                        silent: count.silent + pending - yes - no,
                    };
                    all = (all.0 && f(end), all.1 || f(end));
                }
            }
            all
        };
        let (_, some_win) = ends(&|end| end.granted >= quorum.needed());
        assert_eq!(count.hopeless(quorum), !some_win, "{count:?} {quorum:?}");
        let (always_busy, sometimes_busy) = ends(&|end| end.held > quorum.masters() - quorum.needed());
        match count.why_hopeless(quorum) {
            Some(Verdict::Contended) => assert!(always_busy && count.hopeless(quorum)),
            Some(verdict) => assert!(verdict == Verdict::NoQuorum && !sometimes_busy),
            None => assert!(!always_busy && sometimes_busy),
        }
    }
}
