//! What happened to locks, for the log.
//!
//! One line an outcome, while they are few. What befalls thousands of locks at once is told by name of the first hundred of
//! a kind; the lines of the others are for those who log at debug level, and everybody gets their number.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::holder::HolderId;
use crate::protocol::attempt::Attempt;
use crate::protocol::news::News;
use crate::protocol::release::Released;
use crate::protocol::time::Moment;
use crate::protocol::verdict::Verdict;
use crate::transport::Resources;

/// So many lines of a kind are loud within [`WINDOW`] (case B95).
const BY_NAME: u32 = 100;
const WINDOW: Duration = Duration::from_secs(10);

/// What an operator is told of.
#[derive(Clone, Copy)]
enum Kind {
    AtRisk,
    Recovered,
    KeyLost,
    Healed,
    Lost,
    Lingering,
    HeldForLong,
}

/// A line that is loud, or for debugging only.
macro_rules! tell {
    ($is_loud:expr, $level:ident, $($line:tt)*) => {
        if $is_loud { tracing::$level!($($line)*) } else { tracing::debug!($($line)*) }
    };
}

/// How much of each kind was told lately.
#[derive(Debug, Default)]
pub(crate) struct Events {
    lately: Mutex<Lately>,
}

#[derive(Debug, Default)]
struct Lately {
    /// When the lines begin to be counted anew; `None` if there were none.
    ends: Option<Moment>,
    lines: [u32; Kind::HeldForLong as usize + 1],
}

impl Lately {
    /// How many lines of `kind` were not loud, if any.
    fn quiet(&self, kind: Kind) -> Option<u32> {
        self.lines[kind as usize].checked_sub(BY_NAME).filter(|quiet| *quiet > 0)
    }

    fn sum_up(&mut self) {
        let before = std::mem::take(self);
        if let Some(more) = before.quiet(Kind::Lost) {
            tracing::error!(more, "lost: more locks than were named");
        }
        if let Some(more) = before.quiet(Kind::AtRisk) {
            tracing::warn!(more, "at risk: more locks than were named");
        }
        if let Some(more) = before.quiet(Kind::Recovered) {
            tracing::info!(more, "renewed again: more locks than were named");
        }
        if let Some(more) = before.quiet(Kind::KeyLost) {
            tracing::warn!(more, "a master lost the key: of more locks than were named");
        }
        if let Some(more) = before.quiet(Kind::Healed) {
            tracing::info!(more, "key created anew: of more locks than were named");
        }
        if let Some(more) = before.quiet(Kind::Lingering) {
            tracing::warn!(more, "released, but the key may linger: of more locks than were named");
        }
        if let Some(more) = before.quiet(Kind::HeldForLong) {
            tracing::warn!(more, "held for long: more locks than were named");
        }
    }
}

impl Events {
    fn lately(&self) -> MutexGuard<'_, Lately> {
        self.lately.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a line of `kind` is loud. The first one that is not is noted in `overflows`.
    fn is_loud(&self, kind: Kind, overflows: &Cell<bool>, now: Moment) -> bool {
        let mut lately = self.lately();
        if lately.ends.is_some_and(|ends| now >= ends) {
            lately.sum_up();
        }
        lately.ends.get_or_insert(now.plus(WINDOW));
        let lines = &mut lately.lines[kind as usize];
        *lines = lines.saturating_add(1);
        if *lines == BY_NAME + 1 {
            overflows.set(true);
        }
        *lines <= BY_NAME
    }

    /// When lines that were not loud have to be summed up.
    pub(crate) fn next_sum(&self) -> Option<Moment> {
        let lately = self.lately();
        lately.ends.filter(|_| lately.lines.iter().any(|lines| *lines > BY_NAME))
    }

    pub(crate) fn on_time(&self, now: Moment) {
        let mut lately = self.lately();
        if lately.ends.is_some_and(|ends| now >= ends) {
            lately.sum_up();
        }
    }

    /// Nobody comes back to it.
    pub(crate) fn end(&self) {
        self.lately().sum_up();
    }

    /// A busy lock is business as usual and only worth a debug line; a lost one is an error. Whether a sum has to be told
    /// that had not to be before.
    pub(super) fn report(
        &self,
        resources: &Resources,
        holder: &HolderId,
        attempt: &Attempt,
        news: News,
        now: Moment,
    ) -> bool {
        let resource = || resources.field();
        if news.verdict
            && let Some(verdict) = attempt.verdict()
        {
            match verdict {
                Verdict::Won => {
                    let votes = attempt.backing().len();
                    count!("quorlock_claims_total", "outcome" => "won");
                    tracing::debug!(resource = resource(), %holder, votes, "acquired");
                }
                Verdict::Contended => {
                    count!("quorlock_claims_total", "outcome" => "busy");
                    tracing::debug!(resource = resource(), "busy");
                }
                Verdict::NoQuorum => {
                    count!("quorlock_claims_total", "outcome" => "no quorum");
                    tracing::debug!(resource = resource(), tally = ?attempt.tally(), "no quorum")
                }
                Verdict::TooLate => {
                    count!("quorlock_claims_total", "outcome" => "too late");
                    tracing::debug!(resource = resource(), "granted too late");
                }
            }
        }
        let remaining = || attempt.deadline().map(|deadline| deadline.since(now));
        let overflows = Cell::new(false);
        let is_loud = |kind| self.is_loud(kind, &overflows, now);
        if news.confirmed {
            count!("quorlock_renewals_total", "outcome" => "confirmed");
        }
        if news.renewal_failed {
            count!("quorlock_renewals_total", "outcome" => "not confirmed");
            tracing::debug!(resource = resource(), remaining = ?remaining(), tally = ?attempt.tally(), "renewal not confirmed");
        }
        if news.at_risk {
            count!("quorlock_at_risk_total");
            tell!(is_loud(Kind::AtRisk), warn, resource = resource(), %holder, remaining = ?remaining(), "at risk: no renewal was confirmed lately");
        }
        if news.recovered {
            tell!(is_loud(Kind::Recovered), info, resource = resource(), %holder, remaining = ?remaining(), "renewed again");
        }
        if news.key_lost {
            let votes = attempt.backing().len();
            tell!(is_loud(Kind::KeyLost), warn, resource = resource(), %holder, votes, "a master lost the key");
        }
        if news.healed {
            tell!(is_loud(Kind::Healed), info, resource = resource(), %holder, "key created anew where it was missing");
        }
        if news.lost
            && let Some(why) = attempt.loss()
        {
            count!("quorlock_lost_total", "why" => {
                use crate::protocol::attempt::Loss;
                match why {
                    Loss::Expired => "expired",
                    Loss::Vanished => "vanished",
                    Loss::MaxHold => "max_hold",
                }
            });
            tell!(is_loud(Kind::Lost), error, resource = resource(), %holder, ?why, "lost");
        }
        if news.released
            && let Some(outcome) = attempt.released()
        {
            match outcome {
                Released::Freed { pending, .. } => {
                    tracing::debug!(resource = resource(), %holder, %pending, "released");
                }
                Released::Lingering { on, .. } => {
                    tell!(is_loud(Kind::Lingering), warn, resource = resource(), %holder, %on, "released, but the key may linger");
                }
                Released::AlreadyLost(_) => {
                    tracing::debug!(resource = resource(), %holder, "released after it was lost")
                }
            }
        }
        overflows.get()
    }

    /// A hold that nothing bounds: perhaps its holder hangs. The answer is as to a [`report`](Self::report).
    pub(super) fn remind(
        &self,
        resources: &Resources,
        holder: &HolderId,
        held: Duration,
        now: Moment,
    ) -> bool {
        let overflows = Cell::new(false);
        let is_loud = self.is_loud(Kind::HeldForLong, &overflows, now);
        tell!(is_loud, warn, resource = resources.field(), %holder, ?held, "held for long, and no max_hold bounds it");
        overflows.get()
    }
}
