//! The one state machine: a claim under one holder id, from its first command to the end of its last key.
//!
//! The driver feeds it and drains it, in this way:
//!
//! * `on_*` takes what happened: an answer, the passing of time, a new connection;
//! * [`next_dispatch`](Attempt::next_dispatch) yields commands until there is none; each is handed to the transport
//!   and answered by exactly one [`on_reply`](Attempt::on_reply);
//! * [`next_time`](Attempt::next_time) says when [`on_time`](Attempt::on_time) is due, at the latest;
//! * [`take_news`](Attempt::take_news) tells what changed, for those who wait or write logs.
//!
//! Time never goes backwards between calls.

use std::time::Duration;

use super::fanout::{Act, Dispatch};
use super::mutant::{self, Mutant};
use super::news::News;
use super::numbering::Numbering;
use super::quorum::{MasterId, MasterSet, Quorum};
use super::release::{Released, Releasing};
use super::renewal::Renewal;
use super::request::Ttl;
use super::seat::Seat;
use super::time::Moment;
use super::verdict::Verdict;
use super::votes::{Reply, Tally};

/// One holder id's life on the masters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    pub(super) quorum: Quorum,
    pub(super) ttl: Ttl,
    /// The longest a key of this attempt stays after the last command that set or renewed it, drift included.
    pub(super) longest: Duration,
    pub(super) master_timeout: Duration,
    /// Whether the lock covers several keys, of which a master may lose some and keep others.
    pub(super) several: bool,
    pub(super) seats: Box<[Seat]>,
    pub(super) stage: Stage,
    pub(super) verdict: Option<Verdict>,
    /// The masters whose refusal is to tell more than that.
    pub(super) watched: MasterSet,
    /// `t0`: the clock before the claim's first command was handed over.
    pub(super) started: Moment,
    /// Until when the lease is valid; meaningful while held.
    pub(super) deadline: Moment,
    /// The end of the longest hold the user wants.
    pub(super) cap: Moment,
    pub(super) round: u32,
    pub(super) rolled_back: bool,
    /// The caller went away: nobody asks for the verdict any more.
    pub(super) abandoned: bool,
    pub(super) renewal: Renewal,
    pub(super) releasing: Releasing,
    /// For a claim that is fenced.
    pub(super) numbering: Option<Box<Numbering>>,
    pub(super) to_claim: MasterSet,
    pub(super) to_renew: MasterSet,
    pub(super) to_heal: MasterSet,
    pub(super) to_release: MasterSet,
    pub(super) news: News,
}

/// Where an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The claim is out; w grants are still possible.
    Claiming,
    /// The claim cannot win any more, or was given up; its keys are being removed.
    Failed,
    /// The lease is held until its deadline.
    Held,
    /// The lease ended without a release. For good: nothing that arrives later revives it (hazard H26).
    Lost(Loss),
    /// The holder gave the lease back.
    Released,
}

/// Why a lease was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// The validity ran out before w masters confirmed a renewal.
    Expired,
    /// Fewer than w masters still have the key: it was deleted, evicted, or forgotten in a restart.
    Vanished,
    /// The longest hold asked for is over.
    MaxHold,
}

impl Attempt {
    /// A claim at `now` on every master of `quorum`.
    #[must_use]
    pub fn claim(quorum: Quorum, ttl: Ttl, master_timeout: Duration, now: Moment) -> Self {
        Self {
            quorum,
            ttl,
            longest: ttl.longest_stay(),
            master_timeout,
            several: false,
            seats: vec![Seat::EMPTY; quorum.masters()].into_boxed_slice(),
            stage: Stage::Claiming,
            verdict: None,
            watched: MasterSet::EMPTY,
            started: now,
            deadline: now.plus(ttl.validity()),
            cap: Moment::NEVER,
            round: 1,
            rolled_back: false,
            abandoned: false,
            renewal: Renewal::default(),
            releasing: Releasing::default(),
            numbering: None,
            to_claim: quorum.everyone(),
            to_renew: MasterSet::EMPTY,
            to_heal: MasterSet::EMPTY,
            to_release: MasterSet::EMPTY,
            news: News::default(),
        }
    }

    /// The next command to hand over.
    pub fn next_dispatch(&mut self) -> Option<Dispatch> {
        let (to, act) = if let Some(to) = self.to_claim.pop() {
            (to, if self.watched.contains(to) { Act::Watch } else { Act::Claim })
        } else if let Some(to) = self.next_raise() {
            (to, Act::Raise)
        } else if let Some(to) = self.to_renew.pop() {
            (to, Act::Renew)
        } else if let Some(to) = self.to_heal.pop() {
            (to, Act::Heal)
        } else {
            (self.to_release.pop()?, Act::Release)
        };
        let fence = self.fence(to, act);
        let seat = &mut self.seats[to.index()];
        let urgent = act == Act::Renew && seat.unanswered == 0;
        seat.on_sent(act);
        let (round, stamp) = match act {
            Act::Claim | Act::Watch | Act::Raise => (1, self.started),
            Act::Renew | Act::Heal => (self.renewal.round, self.renewal.stamp),
            Act::Release | Act::QueueUp | Act::Overtake | Act::Leave => (self.round, self.started),
        };
        Some(Dispatch { to, act, round, stamp, ttl: self.ttl, urgent, fence })
    }

    /// Takes the answer to `dispatch`.
    pub fn on_reply(&mut self, dispatch: &Dispatch, reply: Reply, now: Moment) {
        let reply = self.note_number(dispatch, reply);
        let Some(seat) = self.seats.get_mut(dispatch.to.index()) else { return };
        seat.on_answered(dispatch.act, &reply, self.several, now);
        let late = Dispatch { stamp: now, ..*dispatch };
        let dispatch = if mutant::on(Mutant::StampedAtAnswer) { &late } else { dispatch };
        self.expire(now);
        match dispatch.act {
            Act::Claim | Act::Watch => self.on_claimed(dispatch, reply.vote, now),
            Act::Raise => self.on_raised(dispatch, reply.vote, now),
            Act::Renew => self.on_renewed(dispatch, reply.vote, now),
            Act::Heal => self.on_healed(dispatch, &reply.vote),
            Act::Release => self.on_released(dispatch, reply.vote, now),
            Act::QueueUp | Act::Overtake | Act::Leave => {}
        }
    }

    /// Takes the passing of time. Calling it early does nothing.
    pub fn on_time(&mut self, now: Moment) {
        self.expire(now);
        match self.stage {
            Stage::Claiming | Stage::Failed if self.verdict.is_none() && now >= self.claim_limit() => {
                self.end_claim(now);
            }
            Stage::Held => self.keep(now),
            _ => {}
        }
        if self.is_over() {
            self.sweep(now);
        }
    }

    /// Takes a new connection to `master`, ready for deletes; `restarted` if the master is not the process it was.
    pub fn on_link(&mut self, master: MasterId, restarted: bool, now: Moment) {
        self.expire(now);
        let Some(seat) = self.seats.get_mut(master.index()) else { return };
        // What is still unanswered was asked of the process before: its answer, if heard at all, is void.
        let restarted = restarted && !mutant::on(Mutant::RestartIgnored);
        if restarted && (seat.until.is_some() || seat.unanswered > 0) {
            let voted = seat.until.is_some();
            seat.forget(self.round);
            self.news.key_lost |= voted;
            self.renewal.unconfirm(master);
            if self.stage == Stage::Claiming && voted {
                seat.vote = Some(Seat::forgotten());
                self.judge(now);
            }
            self.judge_deadline(now);
        }
        if self.is_over() && !mutant::on(Mutant::LinksNotSwept) {
            self.release_again(master);
        }
    }

    /// When [`on_time`](Self::on_time) is due at the latest; `None` if time changes nothing any more.
    #[must_use]
    pub fn next_time(&self) -> Option<Moment> {
        let own = match self.stage {
            Stage::Claiming | Stage::Failed if self.verdict.is_none() => Some(self.claim_limit()),
            Stage::Held => Some(self.next_keeping()),
            _ => None,
        };
        let cleaning = self.is_over().then(|| self.next_sweep()).flatten();
        own.into_iter().chain(cleaning).min()
    }

    /// Whether nothing can happen to the attempt any more, on no master. One that waits for a connection, perhaps for
    /// ever, is not finished: its key is to be deleted when that comes up (rule 6).
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.is_over() && self.next_time().is_none() && !self.seats.iter().any(Seat::has_left_key)
    }

    /// The holder's own look at the clock found the deadline passed, before any input did.
    pub fn lapse(&mut self) {
        if self.stage == Stage::Held {
            self.lose(if self.deadline >= self.cap { Loss::MaxHold } else { Loss::Expired });
        }
    }

    /// What changed since the last call.
    pub fn take_news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }

    /// Where the attempt stands, as of the last input.
    #[must_use]
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// The judgement on the claim, once it has fallen.
    #[must_use]
    pub const fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// When the claim began.
    #[must_use]
    pub const fn began(&self) -> Moment {
        self.started
    }

    /// Until when the lease is valid, if it is held; an adopted one has no deadline before w masters confirmed it.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        (self.stage == Stage::Held && !self.renewal.adopting).then_some(self.deadline)
    }

    /// The votes of the latest fan-out.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally::new(self.quorum, self.seats.iter().map(|seat| seat.vote.clone()))
    }

    /// The masters on which our key stands and counts.
    #[must_use]
    pub fn backing(&self) -> MasterSet {
        self.those(|seat| seat.until.is_some())
    }

    /// The masters where our key may sit although no win stands behind it.
    #[must_use]
    pub fn strays(&self) -> MasterSet {
        if self.is_over() && !self.releasing.left { self.may_have_key() } else { MasterSet::EMPTY }
    }

    /// How the release ended, once it has.
    #[must_use]
    pub fn released(&self) -> Option<Released> {
        self.releasing.outcome
    }

    pub(super) fn may_have_key(&self) -> MasterSet {
        self.those(Seat::may_have_key)
    }

    pub(super) fn those(&self, which: impl Fn(&Seat) -> bool) -> MasterSet {
        self.quorum.everyone().filter(|master| which(&self.seats[master.index()])).collect()
    }

    pub(super) const fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Failed | Stage::Lost(_) | Stage::Released)
    }

    /// Every input first lets the deadline pass, so that no answer is judged by a lease that is over.
    pub(super) fn expire(&mut self, now: Moment) {
        if now >= self.deadline && !mutant::on(Mutant::LossNotSticky) {
            self.lapse();
        }
    }

    pub(super) fn lose(&mut self, why: Loss) {
        self.stage = Stage::Lost(why);
        self.take_back();
        self.news.lost = true;
    }

    /// What was decided and not handed over yet is of no use any more.
    pub(super) fn take_back(&mut self) {
        self.to_claim = MasterSet::EMPTY;
        self.to_renew = MasterSet::EMPTY;
        self.to_heal = MasterSet::EMPTY;
        if let Some(numbering) = &mut self.numbering {
            numbering.to_raise = MasterSet::EMPTY;
        }
    }
}
