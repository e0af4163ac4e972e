//! One master as one attempt sees it.

use std::time::Duration;

use super::fanout::{Act, Dispatch, Link};
use super::mutant::{self, Mutant};
use super::time::Moment;
use super::votes::{Fault, Reply, Vote};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seat {
    /// The answer in the latest fan-out.
    pub(super) vote: Option<Vote>,
    /// `e_i`: send stamp + ttl − drift of the latest confirmed claim or renewal; `None` is −∞.
    pub(super) until: Option<Moment>,
    /// Answers of rounds up to this one prove nothing any more: a later one said the key was gone.
    pub(super) floor: u32,
    /// Whether the key was there when the master last told.
    pub(super) set: bool,
    /// When it last said that the key is there.
    pub(super) affirmed: Moment,
    /// The connection on which a command that creates the key went unanswered: it may be executed yet.
    pub(super) doubt: Option<Link>,
    /// Commands of ours without an answer, all together and by kind.
    pub(super) unanswered: u8,
    pub(super) creating: u8,
    pub(super) renewing: u8,
    pub(super) releasing: u8,
    /// How often a delete was answered although an older connection may still bring the key.
    pub(super) sweeps: u8,
    /// When to delete again.
    pub(super) next_sweep: Option<Moment>,
}

/// A connection nobody knows; transports count from one.
const SOME_LINK: Link = Link(0);

impl Seat {
    pub(super) const EMPTY: Self = Self {
        vote: None,
        until: None,
        floor: 0,
        set: false,
        affirmed: Moment::from_nanos(0),
        doubt: None,
        unanswered: 0,
        creating: 0,
        renewing: 0,
        releasing: 0,
        sweeps: 0,
        next_sweep: None,
    };

    /// Whether our key is, may be, or may come to be on the master.
    pub(super) const fn may_have_key(&self) -> bool {
        self.has_left_key() || self.creating > 0
    }

    /// The same, of commands that are answered or never will be.
    pub(super) const fn has_left_key(&self) -> bool {
        self.set || self.doubt.is_some()
    }

    /// Whether the latest fan-out got a definite answer here.
    pub(super) const fn has_said_yes_or_no(&self) -> bool {
        matches!(self.vote, Some(Vote::Granted | Vote::Held(_) | Vote::Absent))
    }

    /// When the key is gone by itself, as far as this master answered: `longest` after the release `began`, or after
    /// the master said yes to a command that was slower than that.
    pub(super) fn gone_by(&self, began: Moment, longest: Duration) -> Moment {
        began.max(self.affirmed).plus(longest)
    }

    pub(super) fn on_sent(&mut self, act: Act) {
        self.unanswered = self.unanswered.saturating_add(1);
        if let Some(count) = self.count(act) {
            *count = count.saturating_add(1);
        }
    }

    /// Books an answer: what it says of the key, and of commands sent before it on the same connection.
    pub(super) fn on_answered(&mut self, act: Act, reply: &Reply, several: bool, now: Moment) {
        self.unanswered = self.unanswered.saturating_sub(1);
        if let Some(count) = self.count(act) {
            *count = count.saturating_sub(1);
        }
        match reply.vote {
            Vote::Granted | Vote::Held(_) | Vote::Absent => {
                if self.doubt.is_some() && (self.doubt == reply.link || mutant::on(Mutant::DoubtEndsAnywhere))
                {
                    self.doubt = None;
                }
                let granted = reply.vote == Vote::Granted && act != Act::Release;
                if granted {
                    self.affirmed = now;
                }
                // Where one key of several is missing, the others may stand; a claim sets all or none.
                let some_left = several && matches!(act, Act::Renew | Act::Heal) && self.set;
                self.set = granted || some_left;
            }
            Vote::Unknown(_) if act.creates() => {
                let link = reply.link.unwrap_or(SOME_LINK);
                self.doubt =
                    Some(if self.doubt.is_none_or(|earlier| earlier == link) { link } else { SOME_LINK });
            }
            Vote::Failed(_) | Vote::Unknown(_) => {}
        }
    }

    /// Raises `e_i` by a confirmation, unless a later answer already said the key was gone.
    pub(super) fn confirm(&mut self, dispatch: &Dispatch) {
        if dispatch.round > self.floor || mutant::on(Mutant::OldAnswersCount) {
            self.until = self.until.max(Some(dispatch.stamp.plus(dispatch.ttl.validity())));
        }
    }

    /// The master lost our key, or may have: whatever it confirmed up to `round` counts no more.
    pub(super) fn forget(&mut self, round: u32) {
        self.until = None;
        self.floor = self.floor.max(round);
    }

    /// The vote of a master that gave one and restarted since.
    pub(super) fn forgotten() -> Vote {
        Vote::Unknown(Fault::Broken("the master restarted".into()))
    }

    fn count(&mut self, act: Act) -> Option<&mut u8> {
        match act {
            Act::Claim | Act::Watch | Act::Heal => Some(&mut self.creating),
            Act::Renew => Some(&mut self.renewing),
            Act::Release => Some(&mut self.releasing),
            Act::Raise | Act::QueueUp | Act::Overtake | Act::Leave => None,
        }
    }
}
