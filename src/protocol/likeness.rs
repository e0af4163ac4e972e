//! What of an attempt makes a difference to what may come. For searches, which must know when two worlds are alike.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use super::attempt::{Attempt, Stage};
use super::quorum::MasterId;
use super::time::Moment;

/// A moment as seen from `now`, in nanoseconds. What is longer ago than `reach`, where no rule looks any more, is
/// all alike.
fn seen(moment: Moment, now: Moment, reach: Duration) -> i64 {
    if moment >= now {
        moment.since(now).as_nanos() as i64
    } else {
        -(now.since(moment).min(reach).as_nanos() as i64)
    }
}

impl Attempt {
    /// Feeds what belongs to no master: two attempts that feed alike here and at each master behave alike.
    #[doc(hidden)]
    pub fn feed(&self, now: Moment, reach: Duration, into: &mut impl Hasher) {
        let seen = |moment| seen(moment, now, reach);
        let numbering = self.numbering.as_ref();
        numbering.map(|numbering| (numbering.proposal, numbering.raising, numbering.token)).hash(into);
        let (renewal, releasing) = (&self.renewal, &self.releasing);
        (self.stage, self.ttl, self.longest, self.several, self.rolled_back, self.round).hash(into);
        self.verdict.is_none().then_some(seen(self.started)).hash(into);
        (self.stage == Stage::Held).then_some([seen(self.deadline), seen(self.cap)]).hash(into);
        (renewal.due.map(seen), seen(renewal.regular), renewal.period, seen(renewal.stamp)).hash(into);
        (
            renewal.round,
            renewal.first,
            renewal.confirmed_round,
            renewal.failing,
            renewal.warned,
            renewal.adopting,
        )
            .hash(into);
        (releasing.began.map(seen), releasing.reported, releasing.left, releasing.outcome.is_some())
            .hash(into);
    }

    /// Feeds what belongs to `master`, but not which one it is.
    #[doc(hidden)]
    pub fn feed_seat(&self, master: MasterId, now: Moment, reach: Duration, into: &mut impl Hasher) {
        let Some(seat) = self.seats.get(master.index()) else { return };
        let seen = |moment| seen(moment, now, reach);
        let sets = [self.to_claim, self.to_renew, self.to_heal, self.to_release];
        let sets = sets.into_iter().chain([self.renewal.confirmed, self.renewal.absent]);
        let sets = sets.chain([self.releasing.gone, self.releasing.deleted]);
        let member = sets.fold(0u8, |bits, set| bits << 1 | u8::from(set.contains(master)));
        let counts = [seat.unanswered, seat.creating, seat.renewing, seat.releasing, seat.sweeps, member];
        (counts, seat.floor, seat.set, seat.doubt).hash(into);
        (seat.until.map(seen), seat.next_sweep.map(seen)).hash(into);
        let gone_by = self.releasing.began.filter(|_| seat.has_left_key());
        gone_by.map(|began| seen(began.max(seat.affirmed))).hash(into);
        if let Some(numbering) = self.numbering.as_ref().filter(|_| self.verdict.is_none()) {
            (numbering.numbers[master.index()], numbering.to_raise.contains(master)).hash(into);
        }
        // The answers are counted until the verdict; afterwards only a watchdog looks whether there is one.
        if self.verdict.is_none() {
            seat.vote.hash(into);
        } else if self.renewal.due.is_some() {
            seat.has_said_yes_or_no().hash(into);
        }
    }
}
