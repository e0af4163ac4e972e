//! One connection to one master: dialled, and asked what it leads to.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use ::fred::bytes_utils::Str;
use ::fred::clients::Client;
use ::fred::error::Error;
use ::fred::interfaces::{ClientLike, LuaInterface};
use ::fred::types::{Builder, ConnectHandle};
use tokio::time::{Instant, timeout, timeout_at};

use super::call::{Named, Scripts};
use super::classify;
use super::contact::Contact;
use super::endpoint::{Encryption, Endpoint};
use super::info::MasterInfo;

/// fred may miss to tell that it connected; then it is asked again after this.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// Knows how to reach one master.
#[derive(Debug)]
pub(crate) struct Dialer {
    endpoint: Endpoint,
    encryption: Encryption,
    connect_timeout: Duration,
    master_timeout: Duration,
}

/// A connection that no one speaks on yet.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) task: ConnectionTask,
    pub(super) info: MasterInfo,
    pub(super) round_trip: Duration,
}

/// fred's task for one connection. Dropped, the socket closes at once and nothing more is sent.
pub(super) struct ConnectionTask(ConnectHandle);

impl ConnectionTask {
    pub(super) fn abort(&self) {
        self.0.abort();
    }

    /// Ready with the reason when the connection has ended. Not to be polled again after that.
    pub(super) fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<String> {
        Pin::new(&mut self.0).poll(cx).map(|ended| match ended {
            Ok(Err(error)) => explain(&error),
            Ok(Ok(())) | Err(_) => "the connection was closed".to_owned(),
        })
    }
}

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.abort();
    }
}

impl std::fmt::Debug for ConnectionTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConnectionTask")
    }
}

impl Dialer {
    pub(crate) const fn new(
        endpoint: Endpoint,
        encryption: Encryption,
        connect_timeout: Duration,
        master_timeout: Duration,
    ) -> Self {
        Self { endpoint, encryption, connect_timeout, master_timeout }
    }

    /// The master's address as it may be shown.
    pub(crate) fn name(&self) -> String {
        self.endpoint.to_string()
    }

    /// The master's address for other programs.
    pub(super) fn contact(&self) -> Contact {
        self.endpoint.contact()
    }

    /// How long connecting may take.
    pub(super) const fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// How long one answer may take.
    pub(super) const fn master_timeout(&self) -> Duration {
        self.master_timeout
    }

    pub(super) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    #[cfg(feature = "tls")]
    pub(super) const fn encryption(&self) -> &Encryption {
        &self.encryption
    }

    /// Connects, logs in, and asks who is there; in time, or not at all.
    pub(super) async fn dial(&self) -> Result<Connection, String> {
        let config = self.endpoint.to_fred(&self.encryption).map_err(|error| error.to_string())?;
        let mut builder = Builder::from_config(config);
        builder.with_connection_config(|connection| {
            connection.max_command_attempts = 1;
            connection.connection_timeout = self.connect_timeout;
            connection.internal_command_timeout = self.connect_timeout;
            connection.tcp.nodelay = Some(true);
        });
        builder.with_performance_config(|performance| {
            performance.default_command_timeout = self.master_timeout;
            performance.broadcast_channel_capacity = 4096;
        });
        let client = builder.build().map_err(|error| classify::reason(&error))?;
        let mut task = ConnectionTask(client.connect());
        let limit = Instant::now() + self.connect_timeout;
        timeout_at(limit, connected(&client, &mut task))
            .await
            .map_err(|_| format!("no connection within {:?}, the connect timeout", self.connect_timeout))??;

        let asked = Instant::now();
        let info: String = client.info(None).await.map_err(|error| explain(&error))?;
        let round_trip = asked.elapsed();
        Ok(Connection { client, task, info: MasterInfo::read(&info), round_trip })
    }
}

async fn connected(client: &Client, task: &mut ConnectionTask) -> Result<(), String> {
    loop {
        let ended = std::future::poll_fn(|cx| task.poll_ended(cx));
        tokio::select! {
            biased;
            why = ended => return Err(why),
            told = timeout(ASK_AGAIN, client.wait_for_connect()) => match told {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => return Err(explain(&error)),
                Err(_) => {}
            },
        }
    }
}

impl Connection {
    /// Loads the scripts, or finds that they have to be sent each time.
    pub(super) async fn load_scripts(&self) -> Result<Scripts, String> {
        let load =
            async |named: Named| self.client.script_load::<String, _>(named.text()).await.map(Str::from);
        let [act, release, pass, all, line] = Named::EACH.map(load);
        match tokio::try_join!(act, release, pass, all, line) {
            Ok((act, release, pass, all, line)) => Ok(Scripts::Loaded([act, release, pass, all, line])),
            Err(error) if error.details().starts_with("NOPERM") => Ok(Scripts::Text),
            Err(error) => Err(explain(&error)),
        }
    }
}

/// What a user of this client must be allowed to do.
const ACL: &str = "ACL SETUSER <user> on >password ~* +set +get +del +pttl +pexpire +eval +evalsha \
                   +script|load +hmget +hset +exists +info +hello +client|id \
                   (to be told of releases also +client|caching +client|tracking, to wait in line for them also +zadd \
                   +zrange +zrank +zremrangebyrank, for fencing also +hgetall +time)";

/// What an error while connecting means, with the way out where there is one.
pub(super) fn explain(error: &Error) -> String {
    let words = classify::reason(error);
    if words.starts_with("NOPERM") || words.contains("The user executing the script") {
        format!("{words} (grant it: {})", ACL)
    } else if words.starts_with("NOAUTH") {
        format!("{words} (give a password in the URL: redis://:password@host)")
    } else {
        words
    }
}
