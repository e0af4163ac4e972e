//! A wish for a lock.

use std::sync::Arc;
use std::time::Duration;

use super::drive::{self, Terms};
use super::error::{AcquireError, UsingError};
use super::guard::{Guard, Hold};
use super::handle::Handle;
use super::holder::Label;
use super::stake::Stake;
use super::using;
use super::wait::Waiting;
use crate::protocol::quorum::MasterSet;
use crate::protocol::request::{RequestError, Ttl};
use crate::protocol::time::Moment;
use crate::protocol::votes::{Fault, Tally, Vote};
use crate::transport::Resources;

/// The ttl unless another is asked for: long enough for three tries of a renewal each ten seconds.
const TTL: Duration = Duration::from_secs(30);
/// The wait unless another is asked for.
const WAIT: Duration = Duration::from_secs(10);

/// A request for one lock, on one resource or on several: set what differs from the defaults, then
/// [`acquire`](Self::acquire).
///
/// The defaults: a ttl of 30 s, renewed every third of it for as long as the guard lives, and a wait of up to 10 s.
#[must_use = "a request does nothing until it is acquired"]
#[derive(Clone, Debug)]
pub struct LockRequest {
    handle: Arc<Handle>,
    resources: Resources,
    ttl: Duration,
    renew: bool,
    wait: Duration,
    max_hold: Option<Duration>,
    label: Option<String>,
    fenced: bool,
}

impl LockRequest {
    pub(crate) const fn new(handle: Arc<Handle>, resources: Resources) -> Self {
        let (ttl, wait) = (TTL, WAIT);
        Self { handle, resources, ttl, renew: true, wait, max_hold: None, label: None, fenced: false }
    }

    /// How long the masters keep the key without a renewal, in whole milliseconds: what others wait after a crash of
    /// the holder. Choose at least three times the P99 of the work. Renewal goes on all the same.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// The lock ends by its ttl, whatever the work does. Only this switches renewal off; giving a ttl never does.
    pub fn no_renewal(mut self) -> Self {
        self.renew = false;
        self
    }

    /// How long to wait for the lock; zero makes one claim. The waiting ends in time, give or take the master
    /// timeout of its last claim.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// The lock is lost after this long even if it could be renewed: a holder that hangs must not hold for ever.
    pub fn max_hold(mut self, longest: Duration) -> Self {
        self.max_hold = Some(longest);
        self
    }

    /// The readable part of the holder id, instead of the client's: 1 to 100 printable ASCII characters, no `|`.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Has a [fencing token](Hold::fence) come with the lock: a number that rises with every hold of the resource
    /// that is fenced, for whoever must refuse what comes from a holder that is over. See [`fence`](crate::fence).
    ///
    /// Costs a script instead of a plain `SET` on each master, and a second round trip where the masters' counters
    /// differ. The first such request of a client also looks whether the masters have their counters, which may take
    /// a few times the master timeout.
    pub fn fenced(mut self) -> Self {
        self.fenced = true;
        self
    }

    /// Waits for the lock.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Request`] before any traffic if the request cannot work; else the verdict of the last claim,
    /// with the vote of every master.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropping the future gives the claim up, and the client's own tasks remove what it may have left. A
    /// cancelled call never holds the lock.
    ///
    /// # Left behind
    ///
    /// After a failure or a cancellation no reachable master keeps a key. The one exception: a master whose
    /// connection broke with our command unanswered may still execute it from its buffers. Its key is deleted on the
    /// next connection at once, again after a second and after the ttl, and at the latest its ttl ends it. Who waited and
    /// could not tell the master that keeps the line leaves his place there, for a minute at most.
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        let shared = self.handle.shared();
        self.resources.check()?;
        let ttl = Ttl::new(self.ttl, &shared.policy)?;
        let label = self.label.as_deref().map(Label::new).transpose()?;
        if self.fenced && !shared.transport.can_fence() {
            return Err(RequestError::NoFencing.into());
        }
        let mut waiting = Waiting::begin(shared, &self.resources, self.wait, ttl);
        let mut uncounted = MasterSet::EMPTY;
        loop {
            waiting.turn().await?;
            let claiming = shared.claiming();
            if shared.is_closed() {
                return Err(AcquireError::Closed);
            }
            if self.fenced
                && let Some(counted) = shared.transport.count(shared.quorum, uncounted)
            {
                counted.await;
            }
            let watched = waiting.watched();
            let terms = Terms { ttl, watched, label: label.as_ref(), fenced: self.fenced };
            let lost = match drive::claim(shared, &self.resources, terms).await {
                Ok(stake) => {
                    waiting.served(&stake);
                    if self.fenced {
                        // Not waited for: these were not needed.
                        let doubted = uncounted_of(&stake.look(|attempt, _| attempt.tally()));
                        let _ = shared.transport.count(shared.quorum, doubted);
                    }
                    let guard = self.take(stake, ttl);
                    // Closed meanwhile, and perhaps too late for that to give it back.
                    return if shared.is_closed() { Err(AcquireError::Closed) } else { Ok(guard) };
                }
                Err(lost) => lost,
            };
            drop(claiming);
            uncounted = uncounted_of(&lost.look(|attempt, _| attempt.tally()));
            waiting.sit_out(&lost).await?;
        }
    }

    /// One claim, no waiting.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Left behind
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<Guard, AcquireError> {
        self.clone().wait(Duration::ZERO).acquire().await
    }

    /// Runs `work` under the lock, cancels it if the lock is lost, and gives the lock back in any case. The work's
    /// own result is never hidden.
    ///
    /// # Errors
    ///
    /// [`UsingError`] tells apart: never begun, cancelled, finished without the lock.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work and gives the lock back.
    ///
    /// # Left behind
    ///
    /// As [`acquire`](Self::acquire) and [`Guard::release`].
    pub async fn using<F, Fut>(&self, work: F) -> Result<Fut::Output, UsingError<Fut::Output>>
    where
        F: FnOnce(Hold) -> Fut,
        Fut: Future,
    {
        let guard = self.acquire().await.map_err(UsingError::NotAcquired)?;
        using::run(guard, work).await
    }

    fn take(&self, stake: Arc<Stake>, ttl: Ttl) -> Guard {
        let shared = self.handle.shared();
        let dice = shared.entropy.dice();
        stake.keep(|attempt, now| {
            // Counted from the claim, as the deadline is: the way here may have been long.
            let claimed = attempt.deadline().map_or(now, |deadline| deadline.minus(ttl.validity()));
            if let Some(longest) = self.max_hold {
                attempt.end_hold_at(now.plus(longest), now);
            }
            if self.renew {
                let period = ttl.renewal_period();
                let (first, second) = renewals(claimed, period, dice);
                attempt.watch_over(first, period);
                attempt.scatter(second);
            }
        });
        Guard::new(stake, self.handle.clone())
    }
}

/// The masters that take no part in fencing, by their own words.
fn uncounted_of(tally: &Tally) -> MasterSet {
    let uncounted = |vote: Option<&Vote>| matches!(vote, Some(Vote::Failed(Fault::Uncounted(_))));
    tally.iter().filter(|(_, vote)| uncounted(*vote)).map(|(master, _)| master).collect()
}

/// The first renewal, and how long after it the second one is.
///
/// Slots of a grid of period/16, so that leases due at about the same time are renewed together. The first is drawn from
/// the last quarter of the first period, so that a short hold is never renewed; the second so that leases taken at the
/// same time are spread over the whole grid from then on.
fn renewals(claimed: Moment, period: Duration, dice: u64) -> (Moment, Duration) {
    let slot = u64::try_from(period.as_nanos() / 16).unwrap_or(u64::MAX).max(1);
    let latest = claimed.plus(period).as_nanos();
    let first = (latest - latest % slot).saturating_sub(slot * (dice % 4));
    let second = slot * (4 + (dice / 4) % 13);
    (Moment::from_nanos(first), Duration::from_nanos(second))
}
