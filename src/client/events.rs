//! What happened to locks, for the log.
//!
//! One line an outcome, while they are few. What befalls thousands of locks at once is told by name of the first hundred of
//! a kind; the lines of the others are for those who log at debug level, and everybody gets their number.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::keeper::Keeper;
use super::stake::Stake;
use crate::protocol::attempt::Attempt;
use crate::protocol::news::News;
use crate::protocol::release::Released;
use crate::protocol::time::Moment;
use crate::protocol::verdict::Verdict;

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

    fn is_loud(&self, kind: Kind, keeper: &Keeper, now: Moment) -> bool {
        let mut lately = self.lately();
        if lately.ends.is_some_and(|ends| now >= ends) {
            lately.sum_up();
        }
        lately.ends.get_or_insert(now.plus(WINDOW));
        let lines = &mut lately.lines[kind as usize];
        *lines = lines.saturating_add(1);
        if *lines == BY_NAME + 1 {
            // It may sleep for longer than the window, and has to sum up.
            keeper.look();
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

    /// A busy lock is business as usual and only worth a debug line; a lost one is an error.
    pub(super) fn report(&self, stake: &Stake, attempt: &Attempt, news: News, now: Moment) {
        let Stake { shared, resources, holder, .. } = stake;
        let resource = || resources.field();
        if news.verdict
            && let Some(verdict) = attempt.verdict()
        {
            match verdict {
                Verdict::Won => {
                    let votes = attempt.backing().len();
                    tracing::debug!(resource = resource(), %holder, votes, "acquired");
                }
                Verdict::Contended => tracing::debug!(resource = resource(), "busy"),
                Verdict::NoQuorum => {
                    tracing::debug!(resource = resource(), tally = ?attempt.tally(), "no quorum")
                }
                Verdict::TooLate => tracing::debug!(resource = resource(), "granted too late"),
            }
        }
        let remaining = || attempt.deadline().map(|deadline| deadline.since(now));
        let is_loud = |kind| self.is_loud(kind, &shared.keeper, now);
        if news.renewal_failed {
            tracing::debug!(resource = resource(), remaining = ?remaining(), tally = ?attempt.tally(), "renewal not confirmed");
        }
        if news.at_risk {
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
    }

    /// A hold that nothing bounds: perhaps its holder hangs.
    pub(super) fn remind(&self, stake: &Stake, held: Duration, now: Moment) {
        let Stake { shared, resources, holder, .. } = stake;
        let is_loud = self.is_loud(Kind::HeldForLong, &shared.keeper, now);
        tell!(is_loud, warn, resource = resources.field(), %holder, ?held, "held for long, and no max_hold bounds it");
    }
}
