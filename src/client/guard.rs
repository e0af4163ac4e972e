//! What a holder has: the guard that can give the lock back, and holds for those who do the work.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::error::{ExtendError, FenceError, Lost};
use super::handle::Handle;
use super::holder::HolderId;
use super::release::{self, Released};
use super::stake::Stake;
use crate::protocol::fencing::FencingToken;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::renewal::Extension;
use crate::protocol::request::Ttl;
use crate::protocol::votes::Tally;

/// A risk that lies further ahead is looked for again, since timers have an end.
const LONGEST_NAP: Duration = Duration::from_secs(24 * 60 * 60);

/// The lock, held. The only thing that gives it back.
///
/// Dropping it gives the lock back too, without waiting: the deletes go out by the client's own tasks, also if the
/// drop happens outside a runtime. If those tasks are gone, the ttl ends the lock. Dropping never blocks or panics.
///
/// The lock is a lease: it can end while the guard lives. Race the work against [`lost`](Self::lost), and look at
/// [`is_valid`](Self::is_valid) before each effect that must not happen twice.
#[must_use = "the lock is given back as soon as the guard is dropped"]
#[clippy::has_significant_drop]
pub struct Guard {
    hold: Hold,
    /// Whether dropping gives the lock back.
    armed: bool,
}

/// A view of a lock for those who work under it. Cheap to clone; cannot give the lock back.
#[derive(Clone)]
pub struct Hold {
    stake: Arc<Stake>,
    /// Keeps the client's tasks alive.
    handle: Arc<Handle>,
}

impl Guard {
    pub(crate) fn new(stake: Arc<Stake>, handle: Arc<Handle>) -> Self {
        Self { hold: Hold { stake, handle }, armed: true }
    }

    /// A view of the lock to hand to workers.
    #[must_use]
    pub fn hold(&self) -> Hold {
        self.hold.clone()
    }

    /// See [`Hold::resource`].
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        self.hold.resource()
    }

    /// See [`Hold::resources`].
    pub fn resources(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.hold.resources()
    }

    /// The id our keys are signed with.
    #[must_use]
    pub fn holder(&self) -> &HolderId {
        &self.hold.stake.holder
    }

    /// See [`Hold::is_valid`].
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.hold.is_valid()
    }

    /// See [`Hold::remaining`].
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.hold.remaining()
    }

    /// See [`Hold::lost`].
    pub async fn lost(&self) -> Lost {
        self.hold.lost().await
    }

    /// See [`Hold::fence`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn fence(&self) -> Result<FencingToken, FenceError> {
        self.hold.fence()
    }

    /// On how many masters the key is known to stand.
    #[must_use]
    pub fn votes(&self) -> usize {
        self.hold.stake.look(|attempt, _| attempt.backing().len())
    }

    /// Who said what to the latest claim, renewal or extension, so far: masters that were not needed for the win
    /// answer later than the others, and show here when they do.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.hold.stake.look(|attempt, _| attempt.tally())
    }

    /// Pushes the deadline to `ttl` from now, if w masters confirm before the old one. It only ever raises: where
    /// more than `ttl` is left already, nothing changes. Later renewals use the new ttl.
    ///
    /// # Errors
    ///
    /// [`ExtendError::Lost`] if the lock is over, at once and without any traffic; [`ExtendError::Unconfirmed`] if
    /// too few masters confirmed: then the old deadline stands and nothing was released.
    ///
    /// # Cancel safety
    ///
    /// Safe. The commands are on their way; what they confirm counts all the same.
    ///
    /// # Left behind
    ///
    /// Nothing: an extension creates no key.
    pub async fn extend(&self, ttl: Duration) -> Result<(), ExtendError> {
        let stake = &self.hold.stake;
        let ttl = Ttl::new(ttl, &stake.shared.policy)?;
        let Some(round) = stake.step(|attempt, now| attempt.extend(ttl, now)) else {
            return Err(self.over());
        };
        let limit = Instant::now() + stake.shared.policy.master_timeout();
        loop {
            let changed = stake.changed.notified();
            match stake.look(|attempt, now| attempt.extension(round, now)) {
                Extension::Confirmed => return Ok(()),
                Extension::Lost => return Err(self.over()),
                Extension::Pending if timeout_at(limit, changed).await.is_ok() => {}
                Extension::Pending | Extension::Unconfirmed => {
                    let tally = stake.look(|attempt, _| attempt.tally());
                    let refusal = stake.shared.refusal(&stake.resources, tally);
                    return Err(ExtendError::Unconfirmed { remaining: self.remaining(), refusal });
                }
            }
        }
    }

    fn over(&self) -> ExtendError {
        self.hold.stake.lost().map_or(ExtendError::Closed, ExtendError::Lost)
    }

    /// Gives the lock back and says how that went. Takes one round trip to the w-th fastest master, and at most the
    /// master timeout. The next waiter of this client, if there is one, has the lock after the same round trip.
    ///
    /// Call it only after the work is done: what is still on its way to a database when the lock is given back is
    /// not protected by it (hazard H36).
    ///
    /// # Cancel safety
    ///
    /// Safe: the deletes are on their way from the first poll on, and dropping the future before that drops the
    /// guard.
    ///
    /// # Left behind
    ///
    /// Nothing, as a rule. On masters that cannot be reached the key stays until they can be or its ttl is over;
    /// [`Released`] names them.
    pub async fn release(mut self) -> Released {
        self.armed = false;
        let stake = &self.hold.stake;
        stake.give_back().await;
        release::outcome(stake).await
    }

    /// Leaves the keys to their ttl: ends renewal, gives nothing back. For a lock that another process will
    /// [extend or release](crate::Redlock::release_as) under the same holder id.
    pub fn abandon(mut self) -> HolderId {
        self.armed = false;
        self.hold.stake.keep(|attempt, _| attempt.leave());
        self.hold.stake.holder.clone()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.armed && !mutant::on(Mutant::DropNotTold) {
            self.hold.stake.keep(|attempt, now| attempt.release(now));
        }
    }
}

impl Hold {
    /// Whether the lock is ours at this moment, by a look at the clock: no network, no flag that some task would
    /// have to set in time (hazard H32). Once false, it stays false.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.stake.valid_until().is_some()
    }

    /// The [fencing token](crate::fence) of a lock that was asked for with
    /// [`fenced`](crate::LockRequest::fenced): greater than that of every hold of the resource before. Hand it with
    /// each effect to whoever keeps the resource; that one refuses it when a greater token was there, which also
    /// covers what no look at a clock can, a holder that is stopped between the look and the effect.
    ///
    /// # Errors
    ///
    /// [`FenceError::Lost`] once the lock is over, by a look at the clock; [`FenceError::NotFenced`] if it was not
    /// asked for.
    pub fn fence(&self) -> Result<FencingToken, FenceError> {
        let Some(token) = self.stake.look(|attempt, _| attempt.token()) else {
            return Err(FenceError::NotFenced { resource: self.stake.resources.field() });
        };
        // The look at the clock is the last thing done.
        self.stake.lost().map_or(Ok(token), |lost| Err(lost.into()))
    }

    /// How long the lock stays ours without a further renewal; zero once it is over.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.stake.remaining()
    }

    /// Resolves when the lock is no longer ours: at its deadline, by a timer of its own, however many packets are
    /// lost, or earlier if too few masters turn out to have the key. Also when the guard gave the lock back.
    ///
    /// # Cancel safety
    ///
    /// Safe; call it again as often as you like.
    ///
    /// # Left behind
    ///
    /// Nothing: it only looks.
    pub async fn lost(&self) -> Lost {
        loop {
            let changed = self.stake.changed.notified();
            let remaining = self.stake.remaining();
            if remaining.is_zero()
                && let Some(lost) = self.stake.lost()
            {
                return lost;
            }
            let _ = timeout_at(Instant::now() + remaining, changed).await;
        }
    }

    /// Resolves when the lock will be lost within one renewal period unless a renewal is confirmed until then: time
    /// to finish, or to stop beginning. Also when it is over already. Never for a lock that
    /// [nobody renews](crate::LockRequest::no_renewal), or near the end of its
    /// [longest hold](crate::LockRequest::max_hold): those ends are no surprise.
    ///
    /// A renewal may yet save the lock; await [`lost`](Self::lost) to know.
    ///
    /// # Cancel safety
    ///
    /// Safe; call it again as often as you like.
    ///
    /// # Left behind
    ///
    /// Nothing: it only looks.
    pub async fn at_risk(&self) {
        loop {
            let changed = self.stake.changed.notified();
            let begins = self.stake.look(|attempt, _| attempt.deadline().map(|_| attempt.risk_begins()));
            match begins.map(|begins| begins.since(self.stake.shared.clock.now())) {
                None | Some(Duration::ZERO) => return,
                Some(left) => {
                    let _ = timeout(left.min(LONGEST_NAP), changed).await;
                }
            }
        }
    }

    /// What is locked; of [several](crate::Redlock::lock_all), the first.
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        self.stake.resources.keys().first().map_or(&[], |key| key.as_ref())
    }

    /// All that is locked, in the order asked for.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.stake.resources.keys().iter().map(AsRef::as_ref)
    }

    /// The id our keys are signed with.
    #[must_use]
    pub fn holder(&self) -> &HolderId {
        &self.stake.holder
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").field(&self.hold).finish()
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("resources", &format_args!("{}", self.stake.resources))
            .field("holder", self.holder())
            .field("remaining", &self.remaining())
            .field("closed", &self.handle.is_closed())
            .finish()
    }
}
