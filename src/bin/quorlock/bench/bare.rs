//! Bare fred: the floor, the single instance, and what is asked of masters beside locks.
//!
//! The only file of the command line that names fred: the floor is what fred itself can do, with nothing of ours in between.

use std::time::{Duration, Instant};

use bytes::Bytes;
use fred::bytes_utils::Str;
use fred::prelude::{Client, ClientLike, Config, KeysInterface, LuaInterface, ServerConfig, Value};
use fred::types::{Builder, CustomCommand, Expiration, Key, RespVersion, SetOptions};
use futures::stream::{FuturesUnordered, StreamExt};

use super::chance::Chance;
use super::contender::{Contender, MASTER_TIMEOUT, TTL};

/// Compare and delete, as the Redis documentation has it.
const DELETE: &str =
    "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

/// How long `WAIT` may take.
const WAIT_MILLIS: i64 = 500;

/// The least a program on fred can do: the command to all masters at once, back at the w-th yes. What the others
/// answer arrives while the next command is under way, and nobody looks at it.
#[derive(Debug)]
pub(crate) struct BareFred {
    clients: Vec<Client>,
    delete: Str,
    /// How many replicas must have the key before the lock counts as taken.
    replicas: Option<u8>,
}

/// What the fan-out asks of fred.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Manner {
    /// No time limit, RESP2.
    Plain,
    /// A time limit for each command, as quorlock needs it.
    Limited,
    /// The same over RESP3.
    LimitedResp3,
}

#[derive(Debug)]
pub(crate) struct BareLock {
    key: Key,
    value: Value,
}

impl BareFred {
    pub(crate) async fn connect(urls: &[String], manner: Manner) -> Result<Self, String> {
        let (timeout, version) = match manner {
            Manner::Plain => (Duration::ZERO, RespVersion::RESP2),
            Manner::Limited => (MASTER_TIMEOUT, RespVersion::RESP2),
            Manner::LimitedResp3 => (MASTER_TIMEOUT, RespVersion::RESP3),
        };
        let mut clients = Vec::with_capacity(urls.len());
        let mut delete = Str::default();
        for url in urls {
            let (client, sha) =
                Self::dial(url, timeout, version.clone()).await.map_err(|error| error.to_string())?;
            clients.push(client);
            delete = sha.into();
        }
        Ok(Self { clients, delete, replicas: None })
    }

    async fn dial(
        url: &str,
        timeout: Duration,
        version: RespVersion,
    ) -> Result<(Client, String), fred::error::Error> {
        let Config { server, username, password, .. } = Config::from_url(url)?;
        debug_assert!(!matches!(server, ServerConfig::Clustered { .. }));
        let mut builder =
            Builder::from_config(Config { server, username, password, version, ..Config::default() });
        builder.with_connection_config(|connection| connection.tcp.nodelay = Some(true));
        builder.with_performance_config(|performance| performance.default_command_timeout = timeout);
        let client = builder.build()?;
        client.init().await?;
        let sha = client.script_load(DELETE).await?;
        Ok((client, sha))
    }

    /// The same, with `WAIT` after each `SET`.
    pub(crate) fn confirmed_by(mut self, replicas: u8) -> Self {
        self.replicas = Some(replicas);
        self
    }

    /// A PING to the first `masters` at once: how long until each has answered, the quickest first.
    pub(crate) async fn round_trips(&self, masters: usize) -> Result<Vec<f64>, String> {
        let began = Instant::now();
        let ping = |client: &Client| {
            let client = client.clone();
            async move { client.ping::<Value>(None).await }
        };
        let mut answers: FuturesUnordered<_> = self.clients.iter().take(masters).map(ping).collect();
        let mut times = Vec::with_capacity(masters);
        while let Some(answer) = answers.next().await {
            answer.map_err(|error| error.to_string())?;
            times.push(began.elapsed().as_secs_f64() * 1e6);
        }
        Ok(times)
    }

    /// What a command comes to, master by master, as text.
    pub(crate) async fn ask(&self, command: &'static str, arguments: &[&str]) -> Result<Vec<String>, String> {
        let mut texts = Vec::with_capacity(self.clients.len());
        for client in &self.clients {
            let answer = self.custom(client, command, arguments).await?;
            texts.push(answer.into_string().unwrap_or_default());
        }
        Ok(texts)
    }

    async fn custom(
        &self,
        client: &Client,
        command: &'static str,
        arguments: &[&str],
    ) -> Result<Value, String> {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let command = CustomCommand::new_static(command, None, false);
        client.custom(command, arguments).await.map_err(|error: fred::error::Error| error.to_string())
    }

    /// Deletes what still stands under a prefix, and says how much that was, all masters together.
    pub(crate) async fn sweep(&self, prefix: &str) -> Result<usize, String> {
        let mut swept = 0;
        for client in &self.clients {
            let mut cursor = "0".to_owned();
            loop {
                let pattern = format!("{prefix}*");
                let page =
                    self.custom(client, "SCAN", &[&cursor, "MATCH", &pattern, "COUNT", "1000"]).await?;
                let (next, keys): (String, Vec<String>) =
                    page.convert().map_err(|error: fred::error::Error| error.to_string())?;
                for key in keys.iter().filter(|key| key.starts_with(prefix)) {
                    self.custom(client, "DEL", &[key]).await?;
                    swept += 1;
                }
                if next == "0" {
                    break;
                }
                cursor = next;
            }
        }
        Ok(swept)
    }

    pub(crate) async fn close(&self) {
        for client in &self.clients {
            let _ = client.quit().await;
        }
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
        if let Some(replicas) = self.replicas {
            let wait = |client: &Client| {
                let (client, arguments) = (client.clone(), vec![i64::from(replicas), WAIT_MILLIS]);
                async move { client.custom(CustomCommand::new_static("WAIT", None, false), arguments).await }
            };
            let enough = |answer: &Value| answer.as_i64().is_some_and(|told| told >= i64::from(replicas));
            self.quorum(wait, enough).await.map_err(|_| "no replica confirmed in time".to_owned())?;
        }
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
