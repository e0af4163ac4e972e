//! Release and the removal of strays: compare-and-delete until it is certain that nothing of ours comes back.

use std::time::Duration;

use super::attempt::{Attempt, Loss, Stage};
use super::fanout::Dispatch;
use super::mutant::{self, Mutant};
use super::quorum::{MasterId, MasterSet};
use super::seat::Seat;
use super::time::Moment;
use super::votes::{Fault, Vote};

/// How long after the first delete on a new connection the next one goes out.
const SECOND_SWEEP: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Releasing {
    pub(super) began: Option<Moment>,
    /// Masters that said the key is gone, and those among them where it was there until then.
    pub(super) gone: MasterSet,
    pub(super) deleted: MasterSet,
    /// Whether somebody waits for the outcome of a release, rather than of a claim's roll-back.
    pub(super) reported: bool,
    /// Whether the keys were left to another process: nothing of them is ours to delete any more.
    pub(super) left: bool,
    pub(super) outcome: Option<Released>,
}

/// How a release ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Released {
    /// w masters said the key is gone, or none can have it: others may have the lock.
    Freed {
        /// Where the key was there and is deleted.
        deleted: MasterSet,
        /// Masters not heard of yet; the keeper goes on with them.
        pending: MasterSet,
    },
    /// Too few masters said so in time.
    Lingering {
        /// Where the key may still sit.
        on: MasterSet,
        /// Until when, at the latest, on masters that are up.
        until: Moment,
    },
    /// The lease was over before the release; what was left of it is being deleted.
    AlreadyLost(Loss),
}

impl Attempt {
    /// Why the lease was lost, if it was; giving back what was lost does not change that (hazard H26).
    #[must_use]
    pub const fn loss(&self) -> Option<Loss> {
        match (self.stage(), self.releasing.outcome) {
            (Stage::Lost(why), _) | (_, Some(Released::AlreadyLost(why))) => Some(why),
            _ => None,
        }
    }

    /// Whether w masters have said that the key is gone, be it after the outcome of the release.
    #[must_use]
    pub fn is_freed(&self) -> bool {
        self.releasing.gone.len() >= self.quorum.needed()
    }

    /// Gives the lease back. A second call does nothing.
    pub fn release(&mut self, now: Moment) {
        self.news.deadline = true;
        match self.stage {
            Stage::Held if now < self.deadline => {
                self.stage = Stage::Released;
                self.releasing.reported = true;
                let known = mutant::on(Mutant::ReleaseSkipsDoubtful);
                let whom = if known { self.backing() } else { self.quorum.everyone() };
                self.begin_release(whom, now);
            }
            Stage::Held | Stage::Lost(_) => {
                self.lapse();
                let why = if let Stage::Lost(why) = self.stage { why } else { Loss::Expired };
                self.stage = Stage::Released;
                self.begin_release(self.may_have_key(), now);
                self.resolve(Released::AlreadyLost(why));
            }
            Stage::Claiming | Stage::Failed | Stage::Released => {}
        }
    }

    pub(super) fn begin_release(&mut self, whom: MasterSet, now: Moment) {
        self.round += 1;
        self.releasing.began = Some(now);
        self.take_back();
        self.to_release = if mutant::on(Mutant::ReleaseForgotten) { MasterSet::EMPTY } else { whom };
        if self.releasing.reported {
            self.seats.iter_mut().for_each(|seat| seat.vote = None);
        }
    }

    /// One more delete on `master`, unless one is under way.
    pub(super) fn release_again(&mut self, master: MasterId) {
        let seat = &mut self.seats[master.index()];
        if seat.may_have_key() && seat.releasing == 0 && !self.releasing.left {
            // A delete on one more connection is welcome, but takes no step of the schedule (rule 6).
            if seat.sweeps == 0 {
                seat.next_sweep = None;
            }
            self.to_release = self.to_release.with(master);
        }
    }

    pub(super) fn on_released(&mut self, dispatch: &Dispatch, vote: Vote, now: Moment) {
        let master = dispatch.to;
        let (began, longest) = (self.releasing.began.unwrap_or(now), self.longest);
        let ttl = self.ttl.as_duration();
        let seat = &mut self.seats[master.index()];
        match vote {
            Vote::Granted | Vote::Absent | Vote::Held(_) => {
                self.releasing.gone = self.releasing.gone.with(master);
                if vote == Vote::Granted {
                    self.releasing.deleted = self.releasing.deleted.with(master);
                }
                // The command may still lie in the buffers of an older connection (rule 6).
                if seat.doubt.is_some() && seat.next_sweep.is_none() {
                    seat.sweeps += 1;
                    match seat.sweeps {
                        1 if mutant::on(Mutant::SweptOnce) => seat.doubt = None,
                        1 => seat.next_sweep = Some(now.plus(SECOND_SWEEP)),
                        2 => seat.next_sweep = Some(now.plus(ttl)),
                        _ => seat.doubt = None,
                    }
                }
            }
            _ if seat.next_sweep.is_some() => {}
            // Tried again each second while the key can be there, and whenever a new connection comes up. One that
            // was lost on a connection that is up is tried again in any case: no new connection need come.
            Vote::Failed(_) | Vote::Unknown(_) => {
                let unsent = matches!(vote, Vote::Failed(Fault::Overloaded | Fault::Withdrawn));
                let lost = unsent || matches!(vote, Vote::Unknown(_));
                let of_use = (lost && seat.doubt.is_some())
                    || (seat.may_have_key() && now < seat.gone_by(began, longest));
                seat.next_sweep = of_use.then(|| now.plus(SECOND_SWEEP));
            }
        }
        if self.releasing.reported && dispatch.round == self.round {
            seat.vote = Some(vote);
        }
        self.judge_release(now);
    }

    fn judge_release(&mut self, now: Moment) {
        if !self.releasing.reported || self.releasing.outcome.is_some() {
            return;
        }
        let on = self.may_have_key();
        let under_way = self.seats.iter().any(|seat| seat.releasing > 0) || !self.to_release.is_empty();
        if self.is_freed() || on.is_empty() {
            self.resolve(Released::Freed { deleted: self.releasing.deleted, pending: on });
        } else if !under_way || now >= self.release_limit() {
            self.resolve(Released::Lingering { on, until: self.lingers_until(now) });
        }
    }

    fn resolve(&mut self, outcome: Released) {
        self.releasing.outcome = Some(outcome);
        self.news.released = true;
    }

    pub(super) fn sweep(&mut self, now: Moment) {
        let Some(began) = self.releasing.began else { return };
        for master in self.quorum.everyone() {
            let seat = &mut self.seats[master.index()];
            if seat.unanswered == 0 && now >= seat.gone_by(began, self.longest) {
                seat.set = false;
            }
            if seat.next_sweep.is_some_and(|due| now >= due) {
                seat.next_sweep = None;
                self.release_again(master);
            }
        }
        self.judge_release(now);
    }

    /// A lost lease that nobody released yet waits for its holder, not for time.
    pub(super) fn next_sweep(&self) -> Option<Moment> {
        let began = self.releasing.began?;
        let outcome =
            (self.releasing.reported && self.releasing.outcome.is_none()).then(|| self.release_limit());
        let gone_by = |seat: &Seat| seat.gone_by(began, self.longest);
        let waiting = |seat: &Seat| (seat.set && seat.unanswered == 0).then(|| gone_by(seat));
        let seats = self.seats.iter().flat_map(|seat| seat.next_sweep.into_iter().chain(waiting(seat)));
        seats.chain(outcome).min()
    }

    fn release_limit(&self) -> Moment {
        self.releasing.began.map_or(Moment::NEVER, |began| began.plus(self.master_timeout))
    }

    /// When the last key that may still sit somewhere is gone by itself.
    fn lingers_until(&self, now: Moment) -> Moment {
        let began = self.releasing.began.unwrap_or(now);
        let kept = self.seats.iter().filter(|seat| seat.may_have_key());
        kept.map(|seat| seat.gone_by(began, self.longest)).max().unwrap_or(began)
    }
}
