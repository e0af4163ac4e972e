//! The claim: votes come in, one verdict comes out, and what must not stay is removed.

use super::attempt::{Attempt, Loss, Stage};
use super::fanout::{Act, Dispatch};
use super::mutant::{self, Mutant};
use super::quorum::MasterSet;
use super::seat::Seat;
use super::time::Moment;
use super::validity;
use super::verdict::{Count, Verdict};
use super::votes::{Fault, Vote};

impl Attempt {
    /// The same for a lock on several resources, all or none.
    ///
    /// A master still has one vote, and gives it only if every one of the keys is ours there. So w votes for the set
    /// are w votes for each key of it, and two holders of any one resource exclude each other as if they had asked for
    /// that alone. A master that lost one of the keys, whatever became of the others, is one that lost the vote.
    #[must_use]
    pub const fn of_several(mut self) -> Self {
        self.several = true;
        self
    }

    /// The same claim, that asks `masters` to say on refusal who has the key and until when, and to tell when it changes.
    #[must_use]
    pub const fn watching(mut self, masters: MasterSet) -> Self {
        self.watched = masters;
        self
    }

    pub(super) fn on_claimed(&mut self, dispatch: &Dispatch, vote: Vote, now: Moment) {
        let seat = &mut self.seats[dispatch.to.index()];
        let leaves_key = seat.has_left_key() && !mutant::on(Mutant::LateGrantsKept);
        let vote = match vote {
            Vote::Held(_) if mutant::on(Mutant::RefusalsCount) => Vote::Granted,
            Vote::Unknown(_) if mutant::on(Mutant::SilenceCounts) => Vote::Granted,
            vote => vote,
        };
        match self.stage {
            Stage::Claiming => {
                if vote == Vote::Granted {
                    seat.confirm(dispatch);
                }
                let void = vote == Vote::Granted && seat.until.is_none();
                seat.vote = Some(if void { Seat::forgotten() } else { vote });
                self.judge(now);
            }
            Stage::Failed => {
                seat.vote = Some(vote);
                if leaves_key {
                    if self.rolled_back { self.release_again(dispatch.to) } else { self.roll_back(now) }
                }
                self.judge(now);
            }
            // A straggler of a claim that won on others: the lock now sits on one master more (case B07).
            Stage::Held => {
                if vote == Vote::Granted {
                    seat.confirm(dispatch);
                }
                if self.round == 1 {
                    seat.vote = Some(vote);
                }
                self.judge_deadline(now);
            }
            Stage::Lost(_) | Stage::Released if mutant::on(Mutant::LateGrantsKept) => {}
            Stage::Lost(_) | Stage::Released => self.release_again(dispatch.to),
        }
    }

    pub(super) fn judge(&mut self, now: Moment) {
        if self.verdict.is_some() {
            return;
        }
        let count = self.count();
        if count.won(self.quorum) {
            let deadline = validity::deadline(self.quorum, self.seats.iter().filter_map(|seat| seat.until));
            match deadline {
                Some(deadline)
                    if (now < deadline || mutant::on(Mutant::LateWinAccepted))
                        && self.stage == Stage::Claiming =>
                {
                    if self.has_token() {
                        self.deadline = deadline.min(self.cap);
                        self.stage = Stage::Held;
                        self.settle(Verdict::Won);
                    }
                }
                _ => {
                    self.settle(Verdict::TooLate);
                    self.roll_back(now);
                }
            }
        } else if count.hopeless(self.quorum) {
            self.stage = Stage::Failed;
            self.take_claims_back();
            if !self.those(Seat::has_left_key).is_empty() {
                self.roll_back(now);
            }
            if let Some(why) = self.count().why_hopeless(self.quorum) {
                self.settle(why);
            }
        }
    }

    /// Whether a command that waits unsent is still of use. A claim that lost its cause is taken back instead.
    #[must_use]
    pub fn wants(&self, dispatch: &Dispatch, now: Moment) -> bool {
        match dispatch.act {
            Act::Claim | Act::Watch => match self.stage {
                Stage::Claiming => now < self.claim_limit(),
                // Lost already, but only this answer tells whether to somebody or to silence.
                Stage::Failed if self.verdict.is_none() => !self.abandoned && now < self.claim_limit(),
                // Busy, and nothing of ours anywhere: all masters should know that somebody waits.
                Stage::Failed => dispatch.act == Act::Watch && self.is_refused() && now < self.claim_limit(),
                Stage::Held => now < self.deadline,
                Stage::Lost(_) | Stage::Released => false,
            },
            Act::Raise => self.stage == Stage::Claiming && now < self.claim_limit(),
            // Sent later than a master may take to answer, it would raise little, and the next try waits behind it.
            Act::Renew => {
                let limit = self.deadline.min(dispatch.stamp.plus(self.master_timeout));
                self.stage == Stage::Held && now < limit
            }
            Act::Heal => self.stage == Stage::Held && now < self.deadline,
            Act::Release | Act::QueueUp | Act::Overtake | Act::Leave => true,
        }
    }

    pub(super) fn claim_limit(&self) -> Moment {
        // Raising counters is a second round.
        let rounds = if self.numbering.as_ref().is_some_and(|numbering| numbering.raising) { 2 } else { 1 };
        self.started.plus(self.master_timeout * rounds)
    }

    /// The time limit: whoever has not answered by now counts as silent.
    pub(super) fn end_claim(&mut self, now: Moment) {
        let mut count = self.count();
        count.silent = self.quorum.masters() - count.granted - count.held;
        self.roll_back(now);
        self.settle(count.why_hopeless(self.quorum).unwrap_or(Verdict::NoQuorum));
    }

    /// The caller went away: a claim is undone, a lease it never saw is given back.
    pub fn abandon(&mut self, now: Moment) {
        match self.stage {
            // Lost to certain refusals alone so far. Every command is answered once, at the latest by its timeout: what
            // the last answers leave behind, if they leave anything, is then deleted. Not knowing yet is no reason to
            // delete, or a lock that is merely busy would cost two commands per master and claim.
            Stage::Failed if self.verdict.is_some() => {}
            Stage::Claiming | Stage::Failed => {
                self.abandoned = true;
                self.roll_back(now);
            }
            Stage::Held | Stage::Lost(_) => self.release(now),
            Stage::Released => {}
        }
    }

    /// Sends the compare-and-delete to every master, refusals included; what was not handed over yet is taken back.
    ///
    /// It is not sent where every master has certainly refused: then there is nothing of ours anywhere, and a lock
    /// that is merely busy costs its contenders one command per master and claim instead of two.
    fn roll_back(&mut self, now: Moment) {
        if self.rolled_back {
            return;
        }
        self.rolled_back = true;
        self.stage = Stage::Failed;
        self.take_claims_back();
        let whom = self.may_have_key();
        let nothing = whom.is_empty() || mutant::on(Mutant::RollBackSkipped);
        let everyone = if mutant::on(Mutant::RefusalsNotDeleted) { whom } else { self.quorum.everyone() };
        let whom = if nothing { MasterSet::EMPTY } else { everyone };
        self.begin_release(whom, now);
    }

    /// Whether somebody else has the lock, and no master has, or may have, a key of ours as far as they answered.
    pub(super) fn is_refused(&self) -> bool {
        self.verdict == Some(Verdict::Contended) && !self.rolled_back
    }

    fn take_claims_back(&mut self) {
        for master in std::mem::take(&mut self.to_claim) {
            self.seats[master.index()].vote = Some(Vote::Failed(Fault::Withdrawn));
        }
    }

    fn settle(&mut self, verdict: Verdict) {
        self.verdict = Some(verdict);
        self.news.verdict = true;
    }

    fn count(&self) -> Count {
        let mut count = Count::default();
        for seat in &self.seats {
            match seat.vote {
                None => {}
                Some(Vote::Granted) => count.granted += 1,
                Some(Vote::Held(_)) => count.held += 1,
                Some(Vote::Absent | Vote::Failed(_) | Vote::Unknown(_)) => count.silent += 1,
            }
        }
        count
    }

    /// Sets the deadline anew after a master's `e_i` changed; only while held and before the old deadline.
    pub(super) fn judge_deadline(&mut self, now: Moment) {
        if self.stage != Stage::Held || self.renewal.adopting {
            return;
        }
        let confirmed = self.seats.iter().filter_map(|seat| seat.until);
        match validity::deadline(self.quorum, confirmed) {
            Some(deadline) if now < deadline => {
                let deadline = deadline.min(self.cap);
                self.news.deadline |= deadline != self.deadline;
                self.deadline = deadline;
            }
            _ if mutant::on(Mutant::LossNotSticky) => {}
            _ => self.lose(Loss::Vanished),
        }
    }
}
