//! What happened to a lock, for the log.

use std::time::Duration;

use super::holder::HolderId;
use crate::protocol::attempt::Attempt;
use crate::protocol::news::News;
use crate::protocol::release::Released;
use crate::protocol::time::Moment;
use crate::protocol::verdict::Verdict;
use crate::transport::Resources;

/// One event an outcome. A busy lock is business as usual and only worth a debug line; a lost one is an error.
pub(super) fn report(resources: &Resources, holder: &HolderId, attempt: &Attempt, news: News, now: Moment) {
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
    if news.renewal_failed {
        tracing::debug!(resource = resource(), remaining = ?remaining(), tally = ?attempt.tally(), "renewal not confirmed");
    }
    if news.at_risk {
        tracing::warn!(resource = resource(), %holder, remaining = ?remaining(), "at risk: no renewal was confirmed lately");
    }
    if news.recovered {
        tracing::info!(resource = resource(), %holder, remaining = ?remaining(), "renewed again");
    }
    if news.key_lost {
        tracing::warn!(resource = resource(), %holder, votes = attempt.backing().len(), "a master lost the key");
    }
    if news.healed {
        tracing::info!(resource = resource(), %holder, "key created anew where it was missing");
    }
    if news.lost
        && let Some(why) = attempt.loss()
    {
        tracing::error!(resource = resource(), %holder, ?why, "lost");
    }
    if news.released
        && let Some(outcome) = attempt.released()
    {
        match outcome {
            Released::Freed { pending, .. } => {
                tracing::debug!(resource = resource(), %holder, %pending, "released");
            }
            Released::Lingering { on, .. } => {
                tracing::warn!(resource = resource(), %holder, %on, "released, but the key may linger");
            }
            Released::AlreadyLost(_) => {
                tracing::debug!(resource = resource(), %holder, "released after it was lost")
            }
        }
    }
}

/// A hold that nothing bounds: perhaps its holder hangs.
pub(super) fn remind(resources: &Resources, holder: &HolderId, held: Duration) {
    tracing::warn!(resource = resources.field(), %holder, ?held, "held for long, and no max_hold bounds it");
}
