//! One master's supervisor: connects, admits, lets the connection work, and starts again when it ends.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use ::fred::bytes_utils::Str;
use ::fred::clients::Client;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use super::admission::{self, Admission, Joined};
use super::connect::{Connection, Dialer};
use super::counters::{Line, Part};
use super::link::{End, Wire};
use super::outbox::Gate;
use super::post::Post;
use super::register::{Register, Seen};
use super::tracking::Changes;
use crate::protocol::fanout::Link;
use crate::protocol::policy::Policy;
use crate::protocol::quorum::MasterId;
use crate::protocol::votes::Fault;
use crate::transport::LinkWatcher;

/// The first pause after a failed or ended connection, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// What the connections are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Claims, renewals and releases: JOIN first.
    Vote(Admission),
    /// Releases only: nothing is written but deletes.
    Release,
}

/// Where a master stands, for those who wait for the first connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Dialling,
    Down(String),
    /// The same server as an earlier one of the list.
    Twin(MasterId),
    Quarantined,
    Admitted,
}

/// What all supervisors of a client share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) policy: Policy,
    pub(super) purpose: Purpose,
    pub(super) register: Register,
    pub(super) watcher: OnceLock<Weak<dyn LinkWatcher>>,
    pub(super) changed: Notify,
    pub(super) dice: fn() -> u64,
    /// Whether it was said already that a master does not tell of changes.
    pub(super) told_untold: AtomicBool,
}

/// One master.
#[derive(Debug)]
pub(super) struct Master {
    pub(super) id: MasterId,
    pub(super) name: String,
    pub(super) dialer: Dialer,
    pub(super) post: Post,
    pub(super) part: Arc<Part>,
    pub(super) status: Mutex<Status>,
    /// Whether the connection tells of changes.
    pub(super) tells: AtomicBool,
    /// Whether it votes, as far as was counted.
    pub(super) votes: AtomicBool,
    pub(super) common: Arc<Common>,
}

impl Master {
    pub(super) fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs until the client is dropped.
    pub(super) async fn supervise(self: Arc<Self>) {
        let mut link = 0;
        let mut failures = 0u32;
        let mut down_since = Instant::now();
        loop {
            link += 1;
            let connected = match self.dialer.dial().await {
                Ok(connection) => self.admit(connection).await,
                Err(why) => Err(Status::Down(why)),
            };
            match connected {
                Ok((connection, seen, joined)) => {
                    failures = 0;
                    let down = down_since.elapsed();
                    let end = self.work(connection, Link(link), seen, joined, down).await;
                    self.part.vote_on(None);
                    down_since = Instant::now();
                    self.fall(Status::Down(end.to_string()));
                    // What it would have told is lost, and who waits for it must not wait for that.
                    if let Some(watcher) = self.watcher() {
                        watcher.on_changed(self.id, None);
                    }
                }
                Err(status) => self.fall(status),
            }
            sleep(self.pause(failures)).await;
            failures = failures.saturating_add(1);
        }
    }

    /// Checks what the connection leads to, and lets it vote, or not yet.
    async fn admit(&self, connection: Connection) -> Result<(Connection, Seen, Joined), Status> {
        if let Some(why) = connection.info.unfit() {
            return Err(Status::Down(why));
        }
        let seen = self.common.register.enter(self.id, &connection.info.run_id);
        if let Seen::TwinOf(twin) = seen {
            return Err(Status::Twin(twin));
        }
        if !matches!(connection.info.maxmemory_policy.as_str(), "noeviction" | "") {
            let policy = connection.info.maxmemory_policy.as_str();
            tracing::warn!(master = %self.name, policy, "the master may evict locks: set maxmemory-policy noeviction");
        }
        let joined = match self.common.purpose {
            Purpose::Vote(Admission::Quarantine) => {
                admission::join(&connection.client, &connection.info.run_id, &self.common.policy)
                    .await
                    .map_err(Status::Down)?
            }
            Purpose::Vote(Admission::Off) | Purpose::Release => Joined::Admitted,
        };
        Ok((connection, seen, joined))
    }

    async fn work(
        &self,
        connection: Connection,
        link: Link,
        seen: Seen,
        joined: Joined,
        down: Duration,
    ) -> End {
        let scripts = match connection.load_scripts().await {
            Ok(script) => script,
            Err(why) => return End::Closed(why),
        };
        let Connection { client, task, info, round_trip } = connection;
        let mut changes = self.track(&client).await;
        let run_id = Str::from(info.run_id.to_string());
        let wire = Wire::new(client.clone(), task, link, scripts, changes.is_told(), run_id, round_trip);
        let line = Line { client: client.clone(), run_id: info.run_id.clone() };
        let mut quarantine = self.open(joined, &line);
        if let Some(watcher) = self.watcher() {
            watcher.on_link(self.id, seen == Seen::Changed);
        }
        let down_ms = u64::try_from(down.as_millis()).unwrap_or(u64::MAX);
        tracing::info!(master = %self.name, link = link.0, down_ms, quarantined = quarantine.is_some(), "connected");
        let mut drive = pin!(self.post.work(wire));
        loop {
            let over = async {
                match quarantine {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                end = &mut drive => return end,
                change = changes.next() => {
                    if let Some(watcher) = self.watcher() {
                        change.tell(self.id, &*watcher);
                    }
                    continue;
                }
                () = over => {}
            }
            tokio::select! {
                biased;
                end = &mut drive => return end,
                joined = admission::join(&client, &info.run_id, &self.common.policy) => match joined {
                    Ok(joined) => quarantine = self.open(joined, &line),
                    Err(why) => return End::Closed(why),
                },
            }
        }
    }

    /// Asks the master to tell of changes. Without that, who waits asks again and again instead.
    async fn track(&self, client: &Client) -> Changes {
        let changes = match self.common.purpose {
            Purpose::Release => Changes::untold(),
            Purpose::Vote(_) => Changes::on(client).await.unwrap_or_else(|why| {
                if !self.common.told_untold.swap(true, Ordering::Relaxed) {
                    tracing::warn!(master = %self.name, why, "waiting by polling: to be told of releases, the user needs +client|tracking +client|caching");
                }
                Changes::untold()
            }),
        };
        self.tells.store(changes.is_told(), Ordering::Relaxed);
        changes
    }

    fn watcher(&self) -> Option<Arc<dyn LinkWatcher>> {
        self.common.watcher.get().and_then(Weak::upgrade)
    }

    /// Opens the outbox as far as `joined` allows; until when that is deletes only.
    fn open(&self, joined: Joined, line: &Line) -> Option<Instant> {
        let until = match joined {
            Joined::Admitted => None,
            // A millisecond later, the key is gone on the master too.
            Joined::Wait(left) => Some(Instant::now() + left + Duration::from_millis(1)),
        };
        self.part.vote_on(until.is_none().then(|| line.clone()));
        match (self.common.purpose, until) {
            (Purpose::Release, _) => self.stand(Status::Admitted, Gate::DeletesOnly(None)),
            (Purpose::Vote(_), None) => self.stand(Status::Admitted, Gate::Open),
            (Purpose::Vote(_), Some(_)) => self.stand(Status::Quarantined, Gate::DeletesOnly(until)),
        }
        until
    }

    fn fall(&self, status: Status) {
        self.tells.store(false, Ordering::Relaxed);
        let why = match &status {
            Status::Twin(twin) => format!("it is the same server as {twin} (one run_id)"),
            Status::Down(why) => why.clone(),
            Status::Dialling | Status::Quarantined | Status::Admitted => String::new(),
        };
        if self.status() != status {
            tracing::warn!(master = %self.name, why, "not connected");
        }
        self.stand(status, Gate::Shut(Fault::NotConnected(why.into())));
    }

    fn stand(&self, status: Status, gate: Gate) {
        self.note_vote(matches!(gate, Gate::Open));
        self.post.outbox.set_gate(gate);
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
        self.common.changed.notify_waiters();
    }

    /// Moves the gauge, by which two clients of one process count as two.
    pub(super) fn note_vote(&self, votes: bool) {
        let change =
            f64::from(u8::from(votes)) - f64::from(u8::from(self.votes.swap(votes, Ordering::Relaxed)));
        gauge!(increment change, "quorlock_master_votes", "master" => self.name.clone());
    }

    fn pause(&self, failures: u32) -> Duration {
        let pause = PAUSES.0.saturating_mul(1 << failures.min(10)).min(PAUSES.1);
        let spread = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX) / 2;
        pause / 2 + Duration::from_micros((self.common.dice)() % spread.max(1))
    }
}
