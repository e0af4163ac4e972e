//! Renewal: the deadline is pushed out by w confirmations, missing keys are healed, and no failure releases anything.

use std::time::Duration;

use super::attempt::{Attempt, Stage};
use super::fanout::Dispatch;
use super::mutant::{self, Mutant};
use super::quorum::{MasterId, MasterSet, Quorum};
use super::request::Ttl;
use super::seat::Seat;
use super::time::Moment;
use super::votes::Vote;

/// A watchdog does not run faster.
const SHORTEST_PERIOD: Duration = Duration::from_millis(1);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Renewal {
    /// The watchdog's next try, if there is a watchdog.
    pub(super) due: Option<Moment>,
    /// The next slot of the regular grid; retries go between slots.
    pub(super) regular: Moment,
    pub(super) period: Duration,
    /// How long after its first slot the second one is; then zero, and a period lies between two.
    pub(super) scatter: Duration,
    pub(super) round: u32,
    pub(super) stamp: Moment,
    /// The first of the rounds that count together: a renewal and, until w confirmed, its retries. Without that,
    /// masters farther away than the pause between two tries would confirm each, and none in time.
    pub(super) first: u32,
    /// Masters whose latest answer since that round is a confirmation, or that the key is missing.
    pub(super) confirmed: MasterSet,
    pub(super) absent: MasterSet,
    /// The latest round that w masters confirmed.
    pub(super) confirmed_round: u32,
    pub(super) failing: bool,
    pub(super) warned: bool,
    /// A lease taken over from another process has no deadline until w masters have confirmed it.
    pub(super) adopting: bool,
}

impl Renewal {
    /// Takes back what `master` confirmed: it lost the key since.
    pub(super) const fn unconfirm(&mut self, master: MasterId) {
        self.confirmed = self.confirmed.without(master);
    }
}

/// How a renewal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extension {
    /// Answers that can decide are still out.
    Pending,
    /// w masters confirmed it before the old deadline.
    Confirmed,
    /// w masters did not; the old deadline stands.
    Unconfirmed,
    /// The lease was over before w masters confirmed.
    Lost,
}

impl Attempt {
    /// A lease that another process won under the same holder id, to be extended or released by this one.
    #[must_use]
    pub fn adopt(quorum: Quorum, ttl: Ttl, master_timeout: Duration, now: Moment) -> Self {
        let mut attempt = Self::claim(quorum, ttl, master_timeout, now);
        attempt.to_claim = MasterSet::EMPTY;
        attempt.seats = vec![Seat { set: true, ..Seat::EMPTY }; quorum.masters()].into_boxed_slice();
        attempt.stage = Stage::Held;
        attempt.renewal.adopting = true;
        attempt
    }

    /// Starts the watchdog: first at `first`, then every `period`, and sooner again after a round without w.
    pub fn watch_over(&mut self, first: Moment, period: Duration) {
        self.renewal.due = Some(first);
        self.renewal.regular = first;
        self.renewal.period = period.max(SHORTEST_PERIOD);
    }

    /// Has the second renewal be due `gap` after the first, if that is earlier than a period: leases taken together then
    /// do not stay together.
    pub fn scatter(&mut self, gap: Duration) {
        self.renewal.scatter = gap;
    }

    /// Ends the hold at `cap`, if nothing ends it earlier.
    pub fn end_hold_at(&mut self, cap: Moment, now: Moment) {
        self.expire(now);
        self.cap = cap;
        self.judge_deadline(now);
    }

    /// Since when the lease is held, if it is renewed and nothing but its holder is to end it.
    #[must_use]
    pub fn endless_since(&self) -> Option<Moment> {
        let endless = self.renewal.due.is_some() && self.cap == Moment::NEVER;
        (self.stage == Stage::Held && endless).then_some(self.started)
    }

    /// Leaves the keys to their ttl: the lease is no longer ours to renew or to release.
    pub fn leave(&mut self) {
        self.stage = Stage::Released;
        self.take_back();
        self.seats.fill(Seat::EMPTY);
        self.releasing.left = true;
    }

    /// One extension by `ttl` on every master; the number of its round, or `None` if the lease is over.
    pub fn extend(&mut self, ttl: Ttl, now: Moment) -> Option<u32> {
        if self.stage != Stage::Held || now >= self.deadline {
            return None;
        }
        self.ttl = ttl;
        self.longest = self.longest.max(ttl.longest_stay());
        self.renew_within(ttl.renewal_period(), now);
        self.begin_renewal(self.quorum.everyone(), false, now);
        Some(self.renewal.round)
    }

    /// The watchdog renews with the latest ttl, and so at least as often as that one needs.
    fn renew_within(&mut self, period: Duration, now: Moment) {
        let renewal = &mut self.renewal;
        if let Some(due) = renewal.due
            && period < renewal.period
        {
            renewal.period = period;
            renewal.regular = renewal.regular.min(now.plus(period));
            renewal.due = Some(due.min(renewal.regular));
        }
    }

    /// How the extension of `round` stands. A later renewal that w masters confirm answers for it.
    #[must_use]
    pub fn extension(&self, round: u32, now: Moment) -> Extension {
        if self.stage != Stage::Held || now >= self.deadline {
            return Extension::Lost;
        }
        let renewal = &self.renewal;
        if renewal.confirmed_round >= round {
            Extension::Confirmed
        } else if self.is_renewing() && now < renewal.stamp.plus(self.master_timeout) {
            Extension::Pending
        } else {
            Extension::Unconfirmed
        }
    }

    /// Whether an answer to a renewal is still to come, be it that the command waits to be handed over.
    fn is_renewing(&self) -> bool {
        !self.to_renew.is_empty() || self.seats.iter().any(|seat| seat.renewing > 0)
    }

    pub(super) fn keep(&mut self, now: Moment) {
        if let Some(due) = self.renewal.due
            && now >= due
        {
            self.renewal_due(now);
        }
        if !self.renewal.warned && now >= self.risk_begins() {
            self.renewal.warned = true;
            self.news.at_risk = true;
        }
    }

    fn renewal_due(&mut self, now: Moment) {
        let retry = self.master_timeout.min(self.renewal.period / 4);
        let again = self.renewal.round > 0 && self.renewal.confirmed.len() < self.quorum.needed();
        let patience = self.renewal.stamp.plus(retry);
        if again && now < patience {
            // An extension is under way; it may well be confirmed.
            self.renewal.due = Some(patience);
            return;
        }
        // A master that still owes an answer would get nothing new from a second command in the same stream, until
        // its time is up and the answer will be thrown away.
        let overdue = now >= self.renewal.stamp.plus(self.master_timeout);
        let idle = self.those(|seat| overdue || seat.renewing == 0);
        if again && self.may_yet_be_confirmed(now) {
            // Who has answered need not answer again; the slot waits until it is decided.
            let silent: MasterSet =
                idle.filter(|master| !self.seats[master.index()].has_said_yes_or_no()).collect();
            if !silent.is_empty() {
                self.begin_renewal(silent, true, now);
            }
            self.renewal.due = Some(now.plus(retry));
            return;
        }
        if again {
            self.renewal.failing = true;
            self.news.renewal_failed = true;
        }
        // Slots missed while the machine was suspended are skipped, not made up for.
        while self.renewal.regular <= now {
            let gap = match std::mem::take(&mut self.renewal.scatter) {
                Duration::ZERO => self.renewal.period,
                scattered => scattered.min(self.renewal.period),
            };
            self.renewal.regular = self.renewal.regular.plus(gap);
        }
        self.begin_renewal(idle, again, now);
        self.renewal.due = Some(now.plus(retry).min(self.renewal.regular));
    }

    /// Whether w masters may confirm with answers under way: masters can be farther away than the pause between tries.
    fn may_yet_be_confirmed(&self, now: Moment) -> bool {
        let under_way = self.those(|seat| seat.renewing > 0);
        let possible = under_way.fold(self.renewal.confirmed, MasterSet::with);
        possible.len() >= self.quorum.needed() && now < self.renewal.stamp.plus(self.master_timeout)
    }

    fn begin_renewal(&mut self, whom: MasterSet, again: bool, now: Moment) {
        self.round += 1;
        self.renewal.round = self.round;
        self.renewal.stamp = now;
        if !again {
            self.renewal.first = self.round;
            self.renewal.confirmed = MasterSet::EMPTY;
            self.renewal.absent = MasterSet::EMPTY;
        }
        for master in whom {
            self.seats[master.index()].vote = None;
        }
        self.to_renew = whom;
    }

    pub(super) fn on_renewed(&mut self, dispatch: &Dispatch, vote: Vote, now: Moment) {
        let master = dispatch.to;
        if self.stage != Stage::Held {
            return self.release_again(master);
        }
        let seat = &mut self.seats[master.index()];
        let current = dispatch.round >= self.renewal.first;
        match vote {
            Vote::Granted => {
                seat.confirm(dispatch);
                if current && dispatch.round > seat.floor {
                    self.renewal.confirmed = self.renewal.confirmed.with(master);
                    self.renewal.absent = self.renewal.absent.without(master);
                }
            }
            Vote::Absent | Vote::Held(_) => {
                self.news.key_lost |= seat.until.is_some();
                if !mutant::on(Mutant::AbsentIgnored) {
                    seat.forget(dispatch.round);
                }
                self.renewal.unconfirm(master);
                if current && vote == Vote::Absent {
                    self.renewal.absent = self.renewal.absent.with(master);
                }
            }
            Vote::Failed(_) | Vote::Unknown(_) => {}
        }
        if current {
            seat.vote = Some(vote);
        }
        self.on_confirmations(now);
    }

    fn on_confirmations(&mut self, now: Moment) {
        let under_way = self.is_renewing();
        let renewal = &mut self.renewal;
        let enough = renewal.confirmed.len() >= self.quorum.needed();
        self.news.renewed |= enough || !under_way;
        if enough {
            self.news.deadline |= std::mem::take(&mut renewal.adopting);
            self.news.confirmed |= renewal.confirmed_round < renewal.round;
            renewal.confirmed_round = renewal.round;
            if renewal.due.is_some() {
                renewal.due = Some(renewal.regular);
            }
            self.news.recovered |= std::mem::take(&mut renewal.failing);
        }
        if !enough && !under_way && mutant::on(Mutant::FailedRenewalReleases) {
            self.to_release = self.quorum.everyone();
        }
        self.judge_deadline(now);
        self.renewal.warned &= now >= self.risk_begins();
        // Only behind w confirmations of the same round is a missing key known to be ours to create (rule 9).
        if (enough || mutant::on(Mutant::HealWithoutQuorum)) && self.stage == Stage::Held {
            let absent = std::mem::take(&mut self.renewal.absent);
            self.to_heal = absent.fold(self.to_heal, MasterSet::with);
        }
    }

    /// A key created anew counts only from the next round on: `e_i` stays as it is.
    pub(super) fn on_healed(&mut self, dispatch: &Dispatch, vote: &Vote) {
        if self.stage == Stage::Held {
            let seat = &mut self.seats[dispatch.to.index()];
            let healed = *vote == Vote::Granted;
            self.news.healed |= healed;
            if healed && mutant::on(Mutant::HealCountsAtOnce) {
                seat.until = seat.until.max(Some(dispatch.stamp.plus(dispatch.ttl.validity())));
            }
        } else if !mutant::on(Mutant::LateHealKept) {
            self.release_again(dispatch.to);
        }
    }

    pub(super) fn next_keeping(&self) -> Moment {
        let warning = if self.renewal.warned { Moment::NEVER } else { self.risk_begins() };
        self.deadline.min(self.renewal.due.unwrap_or(Moment::NEVER)).min(warning)
    }

    /// One renewal period before the loss; never for a lease nobody renews.
    #[must_use]
    pub fn risk_begins(&self) -> Moment {
        match self.renewal.due {
            Some(_) if self.deadline < self.cap => self.deadline.minus(self.renewal.period),
            _ => Moment::NEVER,
        }
    }
}
