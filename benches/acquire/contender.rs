//! Who is measured. All get the same masters, keys and ttl.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fred::bytes_utils::Str;
use fred::prelude::{Client, ClientLike, Config, KeysInterface, LuaInterface, ServerConfig, Value};
use fred::types::{Builder, Expiration, Key, RespVersion, SetOptions};
use futures::stream::{FuturesUnordered, StreamExt};
use quorlock::{Guard, Redlock, Released};

use crate::chance::Chance;

/// Long enough that nothing expires, short enough that nothing piles up.
const TTL: Duration = Duration::from_secs(10);

/// As [`quorlock::Policy`] has it.
const MASTER_TIMEOUT: Duration = Duration::from_millis(500);

/// Compare and delete, as the Redis documentation has it.
const DELETE: &str =
    "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

/// A lock, given and taken back.
pub(crate) trait Contender: Send + Sync + 'static {
    type Lock: Send;

    fn acquire(&self, key: &str) -> impl Future<Output = Result<Self::Lock, String>> + Send;

    fn release(&self, lock: Self::Lock) -> impl Future<Output = Result<(), String>> + Send;
}

/// This library.
#[derive(Debug)]
pub(crate) struct Ours {
    client: Redlock,
    renewing: bool,
    fenced: bool,
}

impl Ours {
    pub(crate) async fn connect(urls: &[String], renewing: bool, fenced: bool) -> Result<Self, String> {
        let client = Redlock::connect(urls).await.map_err(|error| error.to_string())?;
        Ok(Self { client, renewing, fenced })
    }
}

impl Contender for Ours {
    type Lock = Guard;

    async fn acquire(&self, key: &str) -> Result<Guard, String> {
        let request = self.client.lock(key).ttl(TTL);
        let request = if self.renewing { request } else { request.no_renewal() };
        let request = if self.fenced { request.fenced() } else { request };
        request.acquire().await.map_err(|error| error.to_string())
    }

    async fn release(&self, lock: Guard) -> Result<(), String> {
        match lock.release().await {
            Released::Freed { .. } => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }
}

/// The least a program on fred can do: the command to all masters at once, back at the w-th yes. What the others
/// answer arrives while the next command is under way, and nobody looks at it.
#[derive(Debug)]
pub(crate) struct BareFred {
    clients: Vec<Client>,
    delete: Str,
}

#[derive(Debug)]
pub(crate) struct BareLock {
    key: Key,
    value: Value,
}

impl BareFred {
    pub(crate) async fn connect(
        urls: &[String],
        timeout: Duration,
        version: RespVersion,
    ) -> Result<Self, String> {
        let mut clients = Vec::with_capacity(urls.len());
        let mut delete = Str::default();
        for url in urls {
            let (client, sha) =
                Self::dial(url, timeout, version.clone()).await.map_err(|error| error.to_string())?;
            clients.push(client);
            delete = sha.into();
        }
        Ok(Self { clients, delete })
    }

    async fn dial(
        url: &str,
        timeout: Duration,
        version: RespVersion,
    ) -> Result<(Client, String), fred::error::Error> {
        let server = Config::from_url(url)?.server;
        debug_assert!(matches!(server, ServerConfig::Centralized { .. }));
        let mut builder = Builder::from_config(Config { server, version, ..Config::default() });
        builder.with_connection_config(|connection| connection.tcp.nodelay = Some(true));
        builder.with_performance_config(|performance| performance.default_command_timeout = timeout);
        let client = builder.build()?;
        client.init().await?;
        let sha = client.script_load(DELETE).await?;
        Ok((client, sha))
    }

    async fn quorum<F>(&self, ask: impl Fn(&Client) -> F, yes: impl Fn(&Value) -> bool) -> Result<(), String>
    where
        F: Future<Output = Result<Value, fred::error::Error>>,
    {
        let needed = self.clients.len() / 2 + 1;
        let mut answers: FuturesUnordered<F> = self.clients.iter().map(ask).collect();
        let mut agreed = 0;
        while let Some(answer) = answers.next().await {
            agreed += usize::from(answer.as_ref().is_ok_and(&yes));
            if agreed == needed {
                return Ok(());
            }
        }
        Err(format!("{agreed} of {needed} votes"))
    }
}

impl Contender for BareFred {
    type Lock = BareLock;

    async fn acquire(&self, key: &str) -> Result<BareLock, String> {
        let key = Key::from(Bytes::copy_from_slice(key.as_bytes()));
        let value = Value::Bytes(Chance::id().into());
        let expiry = Some(Expiration::PX(i64::try_from(TTL.as_millis()).unwrap_or(i64::MAX)));
        let set = |client: &Client| {
            let (client, key, value, expiry) = (client.clone(), key.clone(), value.clone(), expiry.clone());
            async move { client.set(key, value, expiry, Some(SetOptions::NX), false).await }
        };
        self.quorum(set, |answer| answer.as_bytes() == Some(b"OK")).await?;
        Ok(BareLock { key, value })
    }

    async fn release(&self, BareLock { key, value }: BareLock) -> Result<(), String> {
        let delete = |client: &Client| {
            let (client, sha) = (client.clone(), self.delete.clone());
            let (key, value) = (key.clone(), value.clone());
            async move { client.evalsha(sha, key, value).await }
        };
        self.quorum(delete, |answer| matches!(answer, Value::Integer(1))).await
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

/// One contender of any kind, as a row of the table.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Ours(Arc<Ours>),
    Bare(Arc<BareFred>),
    #[cfg(feature = "peers")]
    Rslock(Arc<Rslock>),
}

impl Kind {
    async fn ours(urls: &[String], renewing: bool, fenced: bool) -> Result<Self, String> {
        Ok(Self::Ours(Arc::new(Ours::connect(urls, renewing, fenced).await?)))
    }

    async fn bare(urls: &[String], timeout: Duration, version: RespVersion) -> Result<Self, String> {
        Ok(Self::Bare(Arc::new(BareFred::connect(urls, timeout, version).await?)))
    }
}

/// A row of the table.
#[derive(Debug, Clone)]
pub(crate) struct Arm {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// Every arm, and what it is.
pub(crate) const ARMS: &[(&str, &str)] = &[
    ("quorlock", "this library, five masters, no renewal"),
    ("quorlock-renew", "the same with the watchdog, its default"),
    ("quorlock-fenced", "the same with a fencing token, no renewal"),
    ("fred", "bare fred, five clients, back at the third yes, no timeout"),
    ("fred-timeout", "the same with a command timeout of 500 ms, as quorlock needs it"),
    ("fred-resp3", "the same over RESP3: all that quorlock asks of fred"),
    ("quorlock-1", "this library, one master"),
    ("fred-1", "bare fred, one client, no timeout"),
    #[cfg(feature = "peers")]
    ("rslock", "rslock, one manager"),
];

impl Arm {
    pub(crate) async fn connect(name: &'static str, urls: &[String]) -> Result<Self, String> {
        let one = urls.get(..1).unwrap_or_default();
        let kind: Result<Kind, String> = match name {
            "quorlock" => Kind::ours(urls, false, false).await,
            "quorlock-renew" => Kind::ours(urls, true, false).await,
            "quorlock-fenced" => Kind::ours(urls, false, true).await,
            "quorlock-1" => Kind::ours(one, false, false).await,
            "fred" => Kind::bare(urls, Duration::ZERO, RespVersion::RESP2).await,
            "fred-timeout" => Kind::bare(urls, MASTER_TIMEOUT, RespVersion::RESP2).await,
            "fred-resp3" => Kind::bare(urls, MASTER_TIMEOUT, RespVersion::RESP3).await,
            "fred-1" => Kind::bare(one, Duration::ZERO, RespVersion::RESP2).await,
            #[cfg(feature = "peers")]
            "rslock" => Ok(Kind::Rslock(Arc::new(Rslock::new(urls)))),
            _ => Err("no such arm".to_owned()),
        };
        Ok(Self { name, kind: kind.map_err(|error| format!("{name}: {error}"))? })
    }
}
