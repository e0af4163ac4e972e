//! Who is measured. All get the same masters, keys and ttl.

use std::sync::Arc;
use std::time::Duration;

use quorlock::{Guard, Policy, Redlock, Released};
#[cfg(feature = "peers")]
use tokio::sync::watch;

use super::bare::{BareFred, Manner};
use super::contender::{Contender, Renewing, TTL};

/// How this library is asked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Manners {
    pub(crate) renewing: bool,
    pub(crate) fenced: bool,
    pub(crate) min_votes: Option<usize>,
}

/// This library.
#[derive(Debug)]
pub(crate) struct Ours {
    client: Redlock,
    ttl: Duration,
    renewing: bool,
    fenced: bool,
}

impl Ours {
    pub(crate) async fn connect(
        urls: &[String],
        policy: Policy,
        ttl: Duration,
        manners: Manners,
    ) -> Result<Self, String> {
        let mut builder = Redlock::builder().masters(urls).policy(policy);
        if let Some(votes) = manners.min_votes {
            builder = builder.min_votes(votes);
        }
        let client = builder.connect().await.map_err(|error| error.to_string())?;
        Ok(Self { client, ttl, renewing: manners.renewing, fenced: manners.fenced })
    }

    pub(crate) fn of(client: Redlock, ttl: Duration, renewing: bool) -> Self {
        Self { client, ttl, renewing, fenced: false }
    }

    pub(crate) fn client(&self) -> &Redlock {
        &self.client
    }
}

impl Contender for Ours {
    type Lock = Guard;

    async fn acquire(&self, key: &str) -> Result<Guard, String> {
        let request = self.client.lock(key).ttl(self.ttl);
        let request = if self.renewing { request } else { request.no_renewal() };
        let request = if self.fenced { request.fenced() } else { request };
        request.acquire().await.map_err(|error| error.to_string())
    }

    fn holds(&self, lock: &Guard) -> bool {
        lock.is_valid()
    }

    async fn release(&self, lock: Guard) -> Result<(), String> {
        match lock.release().await {
            Released::Freed { .. } => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }
}

impl Renewing for Ours {
    async fn renew(&self, lock: &mut Guard) -> Result<(), String> {
        lock.extend(self.ttl).await.map_err(|error| error.to_string())
    }
}

/// `rslock`, its manager shared by all tasks.
#[cfg(feature = "peers")]
#[derive(Debug)]
pub(crate) struct Rslock(rslock::LockManager);

#[cfg(feature = "peers")]
impl Rslock {
    pub(crate) fn new(urls: &[String]) -> Self {
        Self(rslock::LockManager::new(urls.iter().map(String::as_str).collect()))
    }

    /// One that asks again at once, where its usual pause makes a hand-off ten times as long.
    pub(crate) fn polling(urls: &[String]) -> Self {
        let mut polling = Self::new(urls);
        polling.0.set_retry(u32::MAX, Duration::from_millis(2));
        polling
    }

    /// Holds a lock until told to end, renewed about every `period` by its own watchdog. Whether it was held to the end.
    pub(crate) async fn keep(&self, key: &str, period: Duration, mut ended: watch::Receiver<bool>) -> bool {
        // It renews half a second before what it takes for the validity ends: the ttl without a hundredth and 2 ms.
        let ahead = period + Duration::from_millis(500);
        let ttl = ahead + ahead.mul_f64(0.0102) + Duration::from_millis(3);
        let work = async || ended.wait_for(|ended| *ended).await.is_ok();
        self.0.using(key.as_bytes(), ttl, work).await.unwrap_or(false)
    }
}

#[cfg(feature = "peers")]
impl Contender for Rslock {
    type Lock = rslock::Lock;

    async fn acquire(&self, key: &str) -> Result<rslock::Lock, String> {
        self.0.lock(key.as_bytes(), TTL).await.map_err(|error| error.to_string())
    }

    async fn release(&self, lock: rslock::Lock) -> Result<(), String> {
        self.0.unlock(&lock).await;
        Ok(())
    }
}

#[cfg(feature = "peers")]
impl Renewing for Rslock {
    async fn renew(&self, lock: &mut rslock::Lock) -> Result<(), String> {
        *lock = self.0.extend(lock, TTL).await.map_err(|error| error.to_string())?;
        Ok(())
    }
}

/// One contender of any kind, as a row of the table.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Ours(Arc<Ours>),
    Bare(Arc<BareFred>),
    #[cfg(feature = "peers")]
    Rslock(Arc<Rslock>),
}

/// A row of the table.
#[derive(Debug, Clone)]
pub(crate) struct Arm {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// How a row comes about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Make {
    Ours(Manners),
    Bare(Manner),
    /// Bare fred on one master, whose replica must have the key, too.
    Confirmed,
    #[cfg(feature = "peers")]
    Rslock,
}

/// A row before it is connected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) masters: usize,
    /// How many of them must agree.
    pub(crate) needed: usize,
    make: Make,
}

const fn entry(name: &'static str, masters: usize, make: Make, what: &'static str) -> Entry {
    Entry { name, what, masters, needed: masters / 2 + 1, make }
}

const OURS: Make = Make::Ours(Manners { renewing: false, fenced: false, min_votes: None });
const RENEWING: Make = Make::Ours(Manners { renewing: true, fenced: false, min_votes: None });
const FENCED: Make = Make::Ours(Manners { renewing: false, fenced: true, min_votes: None });
const FOUR: Make = Make::Ours(Manners { renewing: false, fenced: false, min_votes: Some(4) });

/// Every row, and what it is.
pub(crate) const ENTRIES: &[Entry] = &[
    entry("quorlock", 5, OURS, "this library, 3 of 5 masters, no renewal"),
    entry("quorlock-renew", 5, RENEWING, "the same with the watchdog, its default"),
    entry("quorlock-fenced", 5, FENCED, "the same with a fencing token, no renewal"),
    entry("quorlock-3", 3, OURS, "this library, 2 of 3 masters"),
    entry("quorlock-7", 7, OURS, "this library, 4 of 7 masters"),
    Entry { needed: 4, ..entry("min-votes-4", 5, FOUR, "this library, 4 of 5 masters") },
    entry("quorlock-1", 1, OURS, "this library, one master"),
    entry("single", 1, Make::Bare(Manner::Plain), "bare fred, one master, compare-and-delete release"),
    entry("single-wait", 1, Make::Confirmed, "the same with a replica and WAIT 1"),
    entry("fred", 5, Make::Bare(Manner::Plain), "bare fred, five clients, back at the third yes, no timeout"),
    entry(
        "fred-timeout",
        5,
        Make::Bare(Manner::Limited),
        "the same with a timeout of 500 ms, as quorlock needs it",
    ),
    entry(
        "fred-resp3",
        5,
        Make::Bare(Manner::LimitedResp3),
        "the same over RESP3: all that quorlock asks of fred",
    ),
    #[cfg(feature = "peers")]
    entry("rslock", 5, Make::Rslock, "rslock, one manager, five masters"),
];

impl Entry {
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        ENTRIES.iter().find(|entry| entry.name == name)
    }

    /// Whether it needs a master with a replica.
    pub(crate) const fn wants_replica(&self) -> bool {
        matches!(self.make, Make::Confirmed)
    }

    /// Over the first of these masters.
    pub(crate) async fn connect(&self, urls: &[String], policy: Policy) -> Result<Arm, String> {
        let urls = urls.get(..self.masters).ok_or_else(|| format!("it needs {} masters", self.masters))?;
        let kind = match self.make {
            Make::Ours(manners) => {
                Ours::connect(urls, policy, TTL, manners).await.map(|ours| Kind::Ours(Arc::new(ours)))
            }
            Make::Bare(manner) => {
                BareFred::connect(urls, manner).await.map(|bare| Kind::Bare(Arc::new(bare)))
            }
            Make::Confirmed => BareFred::connect(urls, Manner::Plain)
                .await
                .map(|bare| Kind::Bare(Arc::new(bare.confirmed_by(1)))),
            #[cfg(feature = "peers")]
            Make::Rslock => Ok(Kind::Rslock(Arc::new(Rslock::new(urls)))),
        };
        Ok(Arm { name: self.name, kind: kind.map_err(|error| format!("{}: {error}", self.name))? })
    }
}

impl Arm {
    /// Gives its connections back.
    pub(crate) async fn close(&self) {
        match &self.kind {
            Kind::Ours(ours) => {
                let _ = ours.client().close().await;
            }
            Kind::Bare(bare) => bare.close().await,
            #[cfg(feature = "peers")]
            Kind::Rslock(_) => {}
        }
    }
}
