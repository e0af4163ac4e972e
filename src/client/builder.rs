//! A client of real masters, step by step.

use std::time::Duration;

use super::clock::Clock;
use super::entropy::{self, Entropy};
use super::error::ConnectError;
use super::holder::Label;
use super::locker::{Redlock, quorum};
use super::shared::Shared;
use crate::protocol::fencing::FencingToken;
use crate::protocol::policy::Policy;
use crate::protocol::quorum::{MasterId, Quorum};
use crate::transport::fred::endpoint::{Encryption, Endpoint};
#[cfg(feature = "tls")]
use crate::transport::fred::tls::Tls;
use crate::transport::fred::{self, Admission, Dialer, FenceFloor, FredTransport, Purpose, Settled};

mod look;

/// What a client is made of. Only the masters are required.
#[must_use = "a builder does nothing until it connects"]
#[derive(Clone)]
pub struct Builder {
    masters: Vec<String>,
    policy: Policy,
    min_votes: Option<usize>,
    admission: Admission,
    label: Option<String>,
    connect_timeout: Duration,
    credentials: Option<(String, String)>,
    releases_only: bool,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl Redlock {
    /// A client of these masters, with all defaults.
    ///
    /// Masters that are down now may come later; the client is made without them.
    ///
    /// # Errors
    ///
    /// If the list cannot be one: empty, a bad URL, a master twice under one name or two. The text names the entry
    /// and never a password.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropping the future closes what was opened.
    ///
    /// # Left behind
    ///
    /// On each master the hash `quorlock:admitted`, and `quorlock:quarantine` while it lasts.
    pub async fn connect<U: AsRef<str>>(masters: impl IntoIterator<Item = U>) -> Result<Self, ConnectError> {
        Self::builder().masters(masters).connect().await
    }

    /// A client made step by step.
    pub fn builder() -> Builder {
        Builder {
            masters: Vec::new(),
            policy: Policy::new(),
            min_votes: None,
            admission: Admission::default(),
            label: None,
            connect_timeout: Duration::from_secs(1),
            credentials: None,
            releases_only: false,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl Builder {
    /// The masters' URLs: `redis://`, `valkey://`, with TLS `rediss://`, `valkeys://`, or `redis+unix://`, with
    /// `user:password@` in front of the host where needed. Every client of a fleet must name the same masters.
    pub fn masters<U: AsRef<str>>(mut self, urls: impl IntoIterator<Item = U>) -> Self {
        self.masters = urls.into_iter().map(|url| url.as_ref().to_owned()).collect();
        self
    }

    /// Timing rules.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Raises w above the majority; see [`Quorum::with_min_votes`]. Every client of a fleet must use the same.
    pub fn min_votes(mut self, votes: usize) -> Self {
        self.min_votes = Some(votes);
        self
    }

    /// Whether masters that may have forgotten votes are kept from voting. They are, by default.
    pub fn admission(mut self, admission: Admission) -> Self {
        self.admission = admission;
        self
    }

    /// The readable part of holder ids; `host:pid` unless set.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// The time limit for one connection; one second unless set. Less than 1 ms is taken for that, and more than a
    /// minute for a minute.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout.clamp(Duration::from_millis(1), Duration::from_secs(60));
        self
    }

    /// User and password for every master whose URL has none.
    pub fn credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials = Some((user.into(), password.into()));
        self
    }

    /// A CA and a client certificate of one's own, for masters behind TLS.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// A client for [`release_as`](Redlock::release_as) only: it asks no master to vote, and writes nothing but
    /// deletes.
    pub fn releases_only(mut self) -> Self {
        self.releases_only = true;
        self
    }

    /// Makes the client: waits until the masters are connected or known to be down, at most for the connect timeout.
    ///
    /// # Errors
    ///
    /// As [`Redlock::connect`], and if a number of the policy cannot work.
    ///
    /// # Cancel safety
    ///
    /// As [`Redlock::connect`].
    ///
    /// # Left behind
    ///
    /// As [`Redlock::connect`].
    pub async fn connect(self) -> Result<Redlock, ConnectError> {
        self.policy.check()?;
        let label = match &self.label {
            Some(label) => Label::new(label)?,
            None => Label::of_this_process(),
        };
        let dialers = self.dialers()?;
        let quorum = quorum(dialers.len(), self.min_votes)?;
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(ConnectError::NoRuntime);
        }
        warn_of_small_fleets(quorum);
        let purpose = if self.releases_only { Purpose::Release } else { Purpose::Vote(self.admission) };
        if purpose == Purpose::Vote(Admission::Off) {
            tracing::warn!("admission is off: a master that restarts empty can give one lock to two holders");
        }
        let names: Vec<String> = dialers.iter().map(Dialer::name).collect();
        let transport = FredTransport::start(dialers, self.policy, purpose, entropy::dice);
        if let Settled::Twins(first, second) = transport.settle(quorum, self.connect_timeout).await {
            let name = |master: MasterId| names.get(master.index()).cloned().unwrap_or_default();
            return Err(ConnectError::Twins {
                first: first.index() + 1,
                first_name: name(first),
                second: second.index() + 1,
                second_name: name(second),
            });
        }
        let (clock, entropy) = (Clock::boot(), Entropy::system());
        Redlock::start(Shared::new(Box::new(transport), quorum, self.policy, clock, entropy, label))
    }

    /// Admits fresh masters to voting at once, and names them. Whoever calls it asserts that nobody held a lock on
    /// them before; otherwise let the quarantine pass.
    ///
    /// # Errors
    ///
    /// If the list cannot be one, a master cannot be reached, or any of them has belonged to a fleet before.
    ///
    /// # Cancel safety
    ///
    /// Not safe: dropped half-way, some masters are admitted and the others wait for their quarantine.
    ///
    /// # Left behind
    ///
    /// On each master the hash `quorlock:admitted`, and `quorlock:fence` if none of them has one.
    pub async fn init(&self) -> Result<Vec<String>, ConnectError> {
        self.policy.check()?;
        Ok(fred::init(&self.dialers()?, &self.policy).await?)
    }

    /// Has fencing go on after more masters lost their counters than the others can make up for: those go on from
    /// `floor`, and all tokens from now on are greater. Whoever calls it asserts that no token above the floor was
    /// handed out. Unless one is given it is the greatest counter in sight, or a day ahead of this machine's clock,
    /// whichever is more: tokens follow the clocks, and none is farther ahead.
    ///
    /// Not needed where N − w + 1 masters have their counters: the others get them from those by themselves.
    ///
    /// # Errors
    ///
    /// If the list cannot be one, or a master has a counter above `floor`; then no master was changed.
    ///
    /// # Cancel safety
    ///
    /// Not safe: dropped half-way, some masters go on from the floor. Call it again with the same one.
    ///
    /// # Left behind
    ///
    /// On each master that lost it, the hash `quorlock:fence`.
    pub async fn set_fence_floor(&self, floor: Option<FencingToken>) -> Result<FenceFloor, ConnectError> {
        Ok(fred::set_fence_floor(&self.dialers()?, floor, Clock::boot().proposal()).await?)
    }

    pub(crate) fn dialers(&self) -> Result<Vec<Dialer>, ConnectError> {
        let mut endpoints = Endpoint::parse_all(&self.masters)?;
        if let Some((user, password)) = &self.credentials {
            endpoints.iter_mut().for_each(|endpoint| endpoint.log_in_as(user, password));
        }
        #[cfg(feature = "tls")]
        let encryption = Encryption::prepare(&endpoints, self.tls.as_ref())?;
        #[cfg(not(feature = "tls"))]
        let encryption = Encryption::default();
        let timeout = self.policy.master_timeout();
        let dialer = |endpoint| Dialer::new(endpoint, encryption.clone(), self.connect_timeout, timeout);
        Ok(endpoints.into_iter().map(dialer).collect())
    }
}

/// Passwords stay out.
impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("masters", &self.masters.len())
            .field("policy", &self.policy)
            .field("min_votes", &self.min_votes)
            .field("admission", &self.admission)
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

fn warn_of_small_fleets(quorum: Quorum) {
    let (masters, spare) = (quorum.masters(), quorum.spare());
    if masters < 3 {
        tracing::warn!(
            masters,
            "no master may fail: with fewer than three masters a lock is no safer than on one"
        );
    } else if masters % 2 == 0 {
        tracing::warn!(
            masters,
            may_fail = spare,
            "an even number of masters tolerates no more failures than one fewer"
        );
    }
}
