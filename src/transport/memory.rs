//! Masters as values, for tests without a server.
//!
//! [`Master`] does what a real one does with our commands, on a clock of its own; `tests/conformance.rs` runs the same
//! script of commands on it and on a real one. [`MemoryTransport`] puts one task in front of each, so that answers
//! come in order and never inside the call.

mod counters;

mod lines;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{Ask, LinkWatcher, Refused, Transport};
use crate::protocol::fanout::{Act, Link};
use crate::protocol::fencing::Counters;
use crate::protocol::quorum::{MOST_MASTERS, MasterId};
use crate::protocol::request::Ttl;
use crate::protocol::time::Moment;
use crate::protocol::votes::{Fault, Incumbent, Remaining, Vote};

/// One master: keys with their holders and expiries. Time is an argument, as its own clock shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Master {
    keys: BTreeMap<Bytes, Entry>,
    counters: Counters,
    /// Whether it lost its counters and does not have them again.
    uncounted: bool,
    /// The lines of clients that wait: the bells of those who stand in each, in order.
    lines: BTreeMap<Bytes, Vec<Bytes>>,
    /// What rang, and nobody asked for yet.
    rung: Vec<Bytes>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    /// `None` is a key of another type.
    value: Option<Bytes>,
    /// In whole milliseconds of the master's clock; `None` is a key without a ttl.
    expires: Option<u64>,
}

impl Master {
    /// Executes one act at `now`.
    pub fn execute(&mut self, act: Act, resource: &Bytes, holder: &Bytes, ttl: Ttl, now: Moment) -> Vote {
        if act.is_of_line() {
            return self.line(act, resource, holder).0;
        }
        let expires = millis(now) + u64::from(ttl.as_millis());
        let created = || Entry { value: Some(holder.clone()), expires: Some(expires) };
        let Some(entry) = self.live(resource, now) else {
            return match act {
                Act::Claim | Act::Watch | Act::Heal => {
                    self.keys.insert(resource.clone(), created());
                    Vote::Granted
                }
                _ => Vote::Absent,
            };
        };
        let ours = entry.is_of(holder);
        match act {
            Act::Watch => Vote::Held(entry.incumbent(now)),
            Act::Claim | Act::Raise => Vote::Held(Incumbent::default()),
            _ if !ours => Vote::Held(Incumbent::default()),
            Act::Renew | Act::Heal => {
                entry.expires = Some(entry.expires.map_or(expires, |before| before.max(expires)));
                Vote::Granted
            }
            _ => {
                self.keys.remove(resource);
                Vote::Granted
            }
        }
    }

    /// Executes one act on several keys at `now`, all or none.
    pub fn execute_all(
        &mut self,
        act: Act,
        resources: &[Bytes],
        holder: &Bytes,
        ttl: Ttl,
        now: Moment,
    ) -> Vote {
        let claims = matches!(act, Act::Claim | Act::Watch);
        let mut ours = 0;
        let mut in_the_way: Option<Incumbent> = None;
        for resource in resources {
            match self.live(resource, now) {
                None => {}
                Some(entry) if !claims && entry.is_of(holder) => ours += 1,
                Some(entry) => {
                    let another =
                        Incumbent { resource: Some(resource.as_ref().into()), ..entry.incumbent(now) };
                    if in_the_way.as_ref().is_none_or(|first| another.remaining > first.remaining) {
                        in_the_way = Some(another);
                    }
                }
            }
        }
        match (act, in_the_way) {
            (Act::Release, _) if ours > 0 => {
                self.keys.retain(|key, entry| !(resources.contains(key) && entry.is_of(holder)));
                Vote::Granted
            }
            (_, Some(another)) => Vote::Held(another),
            (Act::Release, None) => Vote::Absent,
            (Act::Renew, None) if ours < resources.len() => Vote::Absent,
            (_, None) => {
                for resource in resources {
                    self.execute(Act::Heal, resource, holder, ttl, now);
                }
                Vote::Granted
            }
        }
    }

    /// `SET resource value`, with a ttl or without: what another program may do.
    pub fn set(
        &mut self,
        resource: impl Into<Bytes>,
        value: impl Into<Bytes>,
        ttl: Option<Duration>,
        now: Moment,
    ) {
        let expires = ttl.map(|ttl| millis(now.plus(ttl)));
        self.keys.insert(resource.into(), Entry { value: Some(value.into()), expires });
    }

    /// A key of another type, as another program may have made it.
    pub fn set_other_type(&mut self, resource: impl Into<Bytes>) {
        self.keys.insert(resource.into(), Entry { value: None, expires: None });
    }

    /// `DEL resource`.
    pub fn delete(&mut self, resource: &[u8]) {
        self.keys.remove(resource);
    }

    /// Forgets everything, as a restart without data does. It takes no part in fencing until it is told counters to
    /// [`recover`](Self::recover).
    pub fn forget(&mut self) {
        self.keys.clear();
        self.lines.clear();
        self.lose_counters();
    }

    /// The value that stands at `resource`; empty for a key of another type.
    #[must_use]
    pub fn value(&mut self, resource: &[u8], now: Moment) -> Option<Bytes> {
        self.live(resource, now).map(|entry| entry.value.clone().unwrap_or_default())
    }

    /// The remaining time of `resource`.
    #[must_use]
    pub fn remaining(&mut self, resource: &[u8], now: Moment) -> Option<Remaining> {
        self.live(resource, now).map(|entry| entry.incumbent(now).remaining)
    }

    /// The keys that stand at `now`.
    #[must_use]
    pub fn keys(&mut self, now: Moment) -> Vec<Bytes> {
        self.keys.retain(|_, entry| !entry.is_over(now));
        self.keys.keys().cloned().collect()
    }

    fn live(&mut self, resource: &[u8], now: Moment) -> Option<&mut Entry> {
        if self.keys.get(resource)?.is_over(now) {
            self.keys.remove(resource);
        }
        self.keys.get_mut(resource)
    }
}

impl Entry {
    fn is_of(&self, holder: &[u8]) -> bool {
        let rest = self.value.as_ref().and_then(|value| value.strip_prefix(holder));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"|"))
    }

    /// Expiry is lazy and a millisecond coarse: a key is gone once the clock is past its expiry.
    fn is_over(&self, now: Moment) -> bool {
        self.expires.is_some_and(|expires| millis(now) > expires)
    }

    fn incumbent(&self, now: Moment) -> Incumbent {
        let left = |expires: u64| Duration::from_millis(expires.saturating_sub(millis(now)));
        Incumbent {
            // Nobody signs with nothing; the script does not tell such a value from another type.
            holder: self.value.as_deref().filter(|value| !value.is_empty()).map(Into::into),
            remaining: self.expires.map_or(Remaining::Forever, |expires| Remaining::For(left(expires))),
            ..Incumbent::default()
        }
    }
}

const fn millis(now: Moment) -> u64 {
    now.as_nanos() / 1_000_000
}

/// Masters in memory, each behind a queue and a task.
#[derive(Debug)]
pub struct MemoryTransport {
    names: Vec<String>,
    masters: Vec<Arc<Mutex<Master>>>,
    queues: Vec<mpsc::UnboundedSender<Ask>>,
    tasks: Vec<JoinHandle<()>>,
    watcher: OnceLock<Weak<dyn LinkWatcher>>,
}

impl MemoryTransport {
    /// `masters` empty masters on the clock `tell`. Must be called inside a runtime.
    pub fn start(masters: usize, tell: impl Fn() -> Moment + Clone + Send + 'static) -> Self {
        let masters: Vec<Arc<Mutex<Master>>> =
            (0..masters.min(MOST_MASTERS)).map(|_| Arc::default()).collect();
        let (queues, tasks) = masters.iter().map(|master| serve(master.clone(), tell.clone())).unzip();
        let names = (1..=masters.len()).map(|nth| format!("memory-{nth}")).collect();
        Self { names, masters, queues, tasks, watcher: OnceLock::new() }
    }

    /// The masters, to look at and to tamper with.
    #[must_use]
    pub fn handles(&self) -> Vec<Arc<Mutex<Master>>> {
        self.masters.clone()
    }

    /// Tells the client that `master` has a new connection.
    pub fn reconnect(&self, master: MasterId, restarted: bool) {
        if let Some(watcher) = self.watcher.get().and_then(Weak::upgrade) {
            watcher.on_link(master, restarted);
        }
    }
}

fn serve(
    master: Arc<Mutex<Master>>,
    tell: impl Fn() -> Moment + Send + 'static,
) -> (mpsc::UnboundedSender<Ask>, JoinHandle<()>) {
    let (queue, mut asks) = mpsc::unbounded_channel::<Ask>();
    // The transport owns the task and ends it when dropped.
    #[allow(clippy::disallowed_methods)]
    let task = tokio::spawn(async move {
        while let Some(ask) = asks.recv().await {
            if !ask.is_wanted() {
                ask.withdraw(Fault::Withdrawn);
                continue;
            }
            let (vote, number) = {
                let mut master = master.lock().unwrap_or_else(PoisonError::into_inner);
                master.answer(&ask, tell())
            };
            ask.answer_numbered(vote, number, Link(1));
        }
    });
    (queue, task)
}

impl Transport for MemoryTransport {
    fn masters(&self) -> &[String] {
        &self.names
    }

    fn send(&self, ask: Ask) -> Result<(), Refused> {
        match self.queues.get(ask.to().index()) {
            Some(queue) => queue.send(ask).map_err(|unsent| Refused::new(unsent.0, Fault::Closed)),
            None => Err(Refused::new(ask, Fault::Closed)),
        }
    }

    fn attach(&self, watcher: Weak<dyn LinkWatcher>) {
        let _ = self.watcher.set(watcher);
    }

    fn close(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Drop for MemoryTransport {
    fn drop(&mut self) {
        self.close();
    }
}
