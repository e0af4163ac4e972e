//! One claim, driven to its verdict.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::holder::Label;
use super::shared::Shared;
use super::stake::Stake;
use crate::protocol::attempt::Attempt;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::quorum::MasterSet;
use crate::protocol::request::Ttl;
use crate::protocol::verdict::Verdict;
use crate::transport::Resources;

/// How the claim asks and signs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) ttl: Ttl,
    /// Who is to tell more than a refusal; nobody for the first claim of a wait.
    pub(crate) watched: MasterSet,
    pub(crate) label: Option<&'a Label>,
    pub(crate) fenced: bool,
}

/// Gives the attempt up unless it is taken out: armed before the first command is handed over, so that a future
/// dropped at any await leaves no key behind (hazard H35).
struct Armed(Option<Arc<Stake>>);

impl Armed {
    fn disarm(mut self) -> Option<Arc<Stake>> {
        self.0.take()
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        if let Some(stake) = self.0.take()
            && !mutant::on(Mutant::DropNotUndone)
        {
            stake.keep(Attempt::abandon);
        }
    }
}

/// A won attempt, or a lost one, which is already being cleaned up; the last answers to it may be on their way.
pub(crate) async fn claim(
    shared: &Arc<Shared>,
    resources: &Resources,
    terms: Terms<'_>,
) -> Result<Arc<Stake>, Arc<Stake>> {
    let holder = shared.new_holder(terms.label);
    let timeout = shared.policy.master_timeout();
    let proposal = terms.fenced.then(|| shared.clock.proposal());
    let attempt =
        Attempt::claim(shared.quorum, terms.ttl, timeout, shared.clock.now()).watching(terms.watched);
    let attempt = match proposal {
        Some(proposal) => attempt.fenced(proposal),
        None => attempt,
    };
    let stake = Stake::new(shared, resources.clone(), holder, attempt);
    let armed = Armed(Some(stake.clone()));

    let mut limit = Instant::now() + timeout;
    stake.step(|_, _| ());
    let verdict = loop {
        let changed = stake.changed.notified();
        if let Some(verdict) = stake.look(|attempt, _| attempt.verdict()) {
            break verdict;
        }
        if timeout_at(limit, changed).await.is_err() {
            let left = stake.step(|attempt, now| {
                attempt.on_time(now);
                attempt.next_time().map(|next| next.since(now)).unwrap_or_default()
            });
            // The timer may be a moment ahead of the clock; or counters are being raised, which takes longer.
            limit = Instant::now() + left.clamp(Duration::from_millis(1), timeout);
        }
    };
    if verdict == Verdict::Won
        && let Some(stake) = armed.disarm()
    {
        return Ok(stake);
    }
    Err(stake)
}
