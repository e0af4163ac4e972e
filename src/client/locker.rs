//! The client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::clock::Clock;
use super::entropy::Entropy;
use super::error::{ConnectError, ExtendError};
use super::guard::Guard;
use super::handle::Handle;
use super::holder::{HolderId, Label};
use super::keeper;
use super::release::{self, Released};
use super::request::LockRequest;
use super::shared::Shared;
use super::stake::Stake;
use crate::protocol::attempt::{Attempt, Stage};
use crate::protocol::policy::Policy;
use crate::protocol::quorum::Quorum;
use crate::protocol::request::{RequestError, Ttl};
use crate::transport::{Resources, Transport};

/// How long a client that closes waits for each delete it has asked for, beside the master timeout. All masters do some
/// ten in it; but the calls of thousands of them wait in line.
const TO_DELETE: Duration = Duration::from_micros(100);

/// A Redlock client of a fixed list of masters. Cheap to clone; clones share connections and the keeper.
///
/// When the last clone and the last guard are gone, the client's tasks finish what is under way and end.
#[derive(Clone)]
pub struct Redlock {
    handle: Arc<Handle>,
}

/// What closing a client came to.
#[must_use = "a lock that was not released ends only by its ttl"]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CloseReport {
    /// Locks that were held and are free now.
    pub released: usize,
    /// Locks whose keys may stay until their ttl, since too few masters answered.
    pub lingering: usize,
    /// Locks that were over before.
    pub lost: usize,
}

impl Redlock {
    /// A client over any transport, with a clock and randomness of one's choice: for simulations and tests.
    ///
    /// # Errors
    ///
    /// If the policy or the number of masters cannot work, or there is no runtime.
    pub fn over(
        transport: impl Transport,
        min_votes: Option<usize>,
        policy: Policy,
        clock: Clock,
        entropy: Entropy,
    ) -> Result<Self, ConnectError> {
        policy.check()?;
        let quorum = quorum(transport.masters().len(), min_votes)?;
        let label = Label::of_this_process();
        Self::start(Shared::new(Box::new(transport), quorum, policy, clock, entropy, label))
    }

    pub(crate) fn start(shared: Shared) -> Result<Self, ConnectError> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| ConnectError::NoRuntime)?;
        let shared = Arc::new(shared);
        let watcher: std::sync::Weak<Shared> = Arc::downgrade(&shared);
        shared.transport.attach(watcher);
        // The keeper is ended by the last handle.
        runtime.spawn(keeper::run(shared.clone()));
        Ok(Self { handle: Handle::new(shared) })
    }

    /// A request for the lock on `resource`, whose bytes are the key.
    pub fn lock(&self, resource: impl AsRef<[u8]>) -> LockRequest {
        LockRequest::new(self.handle.clone(), Resources::one(resource.as_ref()))
    }

    /// A request for one lock on several resources, all or none: up to
    /// [`MOST_RESOURCES`](crate::protocol::request::MOST_RESOURCES), where one named twice counts once.
    ///
    /// The guard has one holder id and one deadline. Each resource is excluded as if it were locked alone, also from
    /// those who [`lock`](Self::lock) one of them. There is no order to keep: a master grants all of them in one step
    /// or none, and who was not granted enough gives back what he has and asks again after a pause that chance
    /// lengthens, so nobody waits while he holds. If one of the keys is lost on a master, that master's vote is.
    ///
    /// ```no_run
    /// # async fn example(redlock: quorlock::Redlock) -> Result<(), Box<dyn std::error::Error>> {
    /// let guard = redlock.lock_all(["account:7", "account:9"]).acquire().await?;
    /// // Move the money.
    /// guard.release().await;
    /// # Ok(()) }
    /// ```
    pub fn lock_all<R: AsRef<[u8]>>(&self, resources: impl IntoIterator<Item = R>) -> LockRequest {
        LockRequest::new(self.handle.clone(), Resources::all(resources))
    }

    /// The masters as they may be shown, in the configured order.
    #[must_use]
    pub fn masters(&self) -> &[String] {
        &self.handle.shared().masters
    }

    /// N and w.
    #[must_use]
    pub fn quorum(&self) -> Quorum {
        self.handle.shared().quorum
    }

    /// Deletes the keys that `holder` has on `resource`: for locks whose guard was
    /// [abandoned](Guard::abandon), perhaps in another process. `Freed` with `deleted: 0` means nothing was there.
    ///
    /// # Errors
    ///
    /// If the resource cannot be a lock.
    ///
    /// # Cancel safety
    ///
    /// Safe: the deletes are on their way from the first poll on.
    ///
    /// # Left behind
    ///
    /// As [`Guard::release`].
    pub async fn release_as(
        &self,
        resource: impl AsRef<[u8]>,
        holder: &HolderId,
    ) -> Result<Released, RequestError> {
        self.release_lent(Resources::one(resource.as_ref()), holder).await
    }

    /// The same for a lock on [several resources](Self::lock_all); of how many masters the report tells, counts those
    /// where any of the keys was there.
    ///
    /// # Errors
    ///
    /// If the resources cannot be one lock.
    ///
    /// # Cancel safety
    ///
    /// As [`release_as`](Self::release_as).
    ///
    /// # Left behind
    ///
    /// As [`Guard::release`].
    pub async fn release_all_as<R: AsRef<[u8]>>(
        &self,
        resources: impl IntoIterator<Item = R>,
        holder: &HolderId,
    ) -> Result<Released, RequestError> {
        self.release_lent(Resources::all(resources), holder).await
    }

    async fn release_lent(&self, resources: Resources, holder: &HolderId) -> Result<Released, RequestError> {
        let stake = self.adopt(resources, holder)?;
        stake.keep(|attempt, now| attempt.release(now));
        Ok(release::outcome(&stake).await)
    }

    /// Takes over a lock whose guard was [abandoned](Guard::abandon), and extends it by `ttl`. The new guard does
    /// not renew.
    ///
    /// # Errors
    ///
    /// [`ExtendError::Unconfirmed`] if fewer than w masters have the key of `holder`; nothing was changed on the
    /// others.
    ///
    /// # Cancel safety
    ///
    /// Safe; keys that were extended stay so.
    ///
    /// # Left behind
    ///
    /// As [`Guard::extend`].
    pub async fn extend_as(
        &self,
        resource: impl AsRef<[u8]>,
        holder: &HolderId,
        ttl: Duration,
    ) -> Result<Guard, ExtendError> {
        self.extend_lent(Resources::one(resource.as_ref()), holder, ttl).await
    }

    /// The same for a lock on [several resources](Self::lock_all), all or none.
    ///
    /// # Errors
    ///
    /// [`ExtendError::Unconfirmed`] if fewer than w masters have all keys of `holder`; nothing was changed on the
    /// others.
    ///
    /// # Cancel safety
    ///
    /// As [`extend_as`](Self::extend_as).
    ///
    /// # Left behind
    ///
    /// As [`Guard::extend`].
    pub async fn extend_all_as<R: AsRef<[u8]>>(
        &self,
        resources: impl IntoIterator<Item = R>,
        holder: &HolderId,
        ttl: Duration,
    ) -> Result<Guard, ExtendError> {
        self.extend_lent(Resources::all(resources), holder, ttl).await
    }

    async fn extend_lent(
        &self,
        resources: Resources,
        holder: &HolderId,
        ttl: Duration,
    ) -> Result<Guard, ExtendError> {
        let stake = self.adopt(resources, holder)?;
        let guard = Guard::new(stake, self.handle.clone());
        match guard.extend(ttl).await {
            Ok(()) => Ok(guard),
            Err(error) => {
                guard.abandon();
                Err(error)
            }
        }
    }

    /// Nobody knows which ttl the other process asked for; it was the fleet's longest at most.
    fn adopt(&self, resources: Resources, holder: &HolderId) -> Result<Arc<Stake>, RequestError> {
        resources.check()?;
        let shared = self.handle.shared();
        let ttl = Ttl::new(shared.policy.max_ttl(), &shared.policy)?;
        let now = shared.clock.now();
        let attempt = Attempt::adopt(shared.quorum, ttl, shared.policy.master_timeout(), now);
        Ok(Stake::new(shared, resources, holder.clone(), attempt))
    }

    /// Refuses new work, ends all waits, gives all held locks back, and closes the connections. Takes about twice the
    /// master timeout at most, and a second more for each ten thousand locks held. Guards find their lock released.
    ///
    /// # Cancel safety
    ///
    /// Safe; what was begun goes on, and the connections close when the last clone and guard are dropped.
    ///
    /// # Left behind
    ///
    /// As [`Guard::release`]; the report counts the locks. Where so many commands waited for a master that a delete found
    /// no room, nobody is left to ask again: its ttl ends that key.
    pub async fn close(&self) -> CloseReport {
        let shared = self.handle.shared();
        shared.refuse_new_work();
        let everyone = shared.keeper.everyone();
        let held: Vec<_> =
            everyone.into_iter().filter(|stake| stake.look(|attempt, _| is_held(attempt.stage()))).collect();
        for stake in &held {
            stake.keep(|attempt, now| attempt.release(now));
        }
        let mut lingering = Vec::new();
        let mut report = CloseReport::default();
        for stake in &held {
            match release::outcome(stake).await {
                Released::Freed { .. } => report.released += 1,
                Released::Lingering { .. } => lingering.push(stake),
                Released::AlreadyLost(_) => report.lost += 1,
            }
        }
        let patience = TO_DELETE.saturating_mul(u32::try_from(held.len()).unwrap_or(u32::MAX));
        shared.answers(shared.policy.master_timeout() + patience).await;
        // Among thousands the delete of one may have come late for its own report.
        report.lingering =
            lingering.iter().filter(|stake| !stake.look(|attempt, _| attempt.is_freed())).count();
        report.released += lingering.len() - report.lingering;
        shared.transport.close();
        report
    }
}

pub(crate) fn quorum(masters: usize, min_votes: Option<usize>) -> Result<Quorum, ConnectError> {
    let quorum = Quorum::majority(masters)?;
    Ok(min_votes.map_or(Ok(quorum), |votes| quorum.with_min_votes(votes))?)
}

const fn is_held(stage: Stage) -> bool {
    matches!(stage, Stage::Held | Stage::Lost(_))
}

impl fmt::Debug for Redlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redlock")
            .field("masters", &self.masters())
            .field("needed", &self.quorum().needed())
            .finish_non_exhaustive()
    }
}
