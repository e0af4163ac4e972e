//! How a claim comes by its fencing token: the counters of w masters, made to agree. The why is in
//! [`fencing`](super::fencing).

use super::attempt::{Attempt, Stage};
use super::fanout::{Act, Dispatch, Fence};
use super::fencing::FencingToken;
use super::mutant::{self, Mutant};
use super::quorum::{MasterId, MasterSet};
use super::time::Moment;
use super::votes::{Fault, Reply, Vote};

/// What an attempt knows of the counters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Numbering {
    pub(super) proposal: u64,
    pub(super) numbers: Box<[Number]>,
    pub(super) to_raise: MasterSet,
    /// Whether there was, or is, a second round.
    pub(super) raising: bool,
    pub(super) token: Option<FencingToken>,
}

/// One master's counter, as far as its answers tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Number {
    /// What the key took when it was created.
    pub(super) seen: u64,
    /// What the counter was asked to be raised to, and what it is known to have reached, while that key stood.
    pub(super) asked: u64,
    pub(super) reached: u64,
}

impl Attempt {
    /// The same claim with a fencing token to be won as well. `proposal` is the wall clock in microseconds.
    #[must_use]
    pub fn fenced(mut self, proposal: u64) -> Self {
        self.numbering = Some(Box::new(Numbering {
            proposal,
            numbers: vec![Number::default(); self.quorum.masters()].into_boxed_slice(),
            to_raise: MasterSet::EMPTY,
            raising: false,
            token: None,
        }));
        self
    }

    /// The token, once the claim is won.
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        self.numbering.as_ref()?.token
    }

    #[cfg(test)]
    pub(super) fn has_raised(&self) -> bool {
        self.numbering.as_ref().is_some_and(|numbering| numbering.raising)
    }

    pub(super) fn next_raise(&mut self) -> Option<MasterId> {
        self.numbering.as_mut()?.to_raise.pop()
    }

    /// What goes with `act` for the counter's sake.
    pub(super) fn fence(&self, to: MasterId, act: Act) -> Option<Fence> {
        let numbering = self.numbering.as_ref()?;
        let number = numbering.numbers.get(to.index())?;
        match act {
            Act::Claim | Act::Watch => Some(Fence::Propose(numbering.proposal)),
            Act::Raise => Some(Fence::Raise { seen: number.seen, to: number.asked }),
            Act::Heal => numbering.token.map(Fence::Restore),
            Act::Renew | Act::Release | Act::QueueUp | Act::Overtake | Act::Leave => None,
        }
    }

    /// Notes the number that came with a grant. A grant without one is none.
    pub(super) fn note_number(&mut self, dispatch: &Dispatch, mut reply: Reply) -> Reply {
        if let Some(numbering) = &mut self.numbering
            && let Some(number) = numbering.numbers.get_mut(dispatch.to.index())
            && let (Act::Claim | Act::Watch, Vote::Granted) = (dispatch.act, &reply.vote)
        {
            match reply.number {
                Some(seen) => *number = Number { seen, asked: seen, reached: seen },
                None => reply.vote = Vote::Unknown(Fault::Unintelligible("a grant without a number".into())),
            }
        }
        reply
    }

    /// Whether the grants carry a token; always so for a claim that wants none. If not, counters are raised.
    pub(super) fn has_token(&mut self) -> bool {
        if self.numbering.is_none() {
            return true;
        }
        let granted = self.those(|seat| seat.vote == Some(Vote::Granted));
        let (everyone, needed) = (self.quorum.everyone(), self.quorum.needed());
        let Some(numbering) = &mut self.numbering else { return true };
        if numbering.token.is_some() {
            return true;
        }
        let anywhere = mutant::on(Mutant::RaisedAnywhere);
        let numbers = |masters: MasterSet| masters.map(|master| numbering.numbers[master.index()]);
        let mut seen: Vec<u64> = numbers(granted).map(|number| number.seen).collect();
        seen.sort_unstable();
        let backs =
            |token: u64| move |number: &Number| (number.seen <= token || anywhere) && token <= number.reached;
        let counted = if anywhere { everyone } else { granted };
        let won = seen.iter().find(|token| numbers(counted).filter(backs(**token)).count() >= needed);
        let won = match (seen.first(), seen.last(), seen.get(needed - 1)) {
            (Some(least), ..) if mutant::on(Mutant::LeastIsToken) => Some(least),
            (_, Some(most), _) if mutant::on(Mutant::GreatestIsToken) => Some(most),
            (.., goal) if mutant::on(Mutant::RaiseNotAwaited) => goal,
            _ => won,
        };
        numbering.token = won.copied().map(FencingToken::new);
        if won.is_some() {
            numbering.to_raise = MasterSet::EMPTY;
        }
        // The least number that w of them can back.
        if let Some(goal) = seen.get(needed - 1).copied()
            && (won.is_none() || mutant::on(Mutant::RaiseNotAwaited))
        {
            numbering.raising = true;
            for master in counted {
                let number = &mut numbering.numbers[master.index()];
                if number.asked < goal && (number.seen <= goal || anywhere) {
                    number.asked = goal;
                    numbering.to_raise = numbering.to_raise.with(master);
                }
            }
        }
        numbering.token.is_some()
    }

    pub(super) fn on_raised(&mut self, dispatch: &Dispatch, vote: Vote, now: Moment) {
        let seat = &mut self.seats[dispatch.to.index()];
        let gone = matches!(vote, Vote::Absent | Vote::Held(_));
        if gone {
            self.news.key_lost |= seat.until.is_some() && self.stage == Stage::Held;
            seat.forget(dispatch.round);
        }
        match self.stage {
            Stage::Claiming => {
                if vote != Vote::Granted {
                    // Whatever it was, the grant of this master carries no token any more.
                    seat.vote = Some(vote);
                } else if let (Some(Fence::Raise { to, .. }), Some(numbering)) =
                    (dispatch.fence, &mut self.numbering)
                {
                    let number = &mut numbering.numbers[dispatch.to.index()];
                    number.reached = number.reached.max(to);
                }
                self.judge(now);
            }
            Stage::Held if gone => self.judge_deadline(now),
            _ => {}
        }
    }
}
