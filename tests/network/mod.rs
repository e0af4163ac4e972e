//! Masters in memory behind wires that delay and lose, on tokio's paused clock.
//!
//! Each master has four wires in a row, each a queue and a task: what waits unsent, what is on its way there, what is
//! on its way back, and what is lost and times out. So commands for one master arrive in the order they were sent,
//! and its answers come back in order, however the delays change meanwhile.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use quorlock::client::clock::Clock;
use quorlock::client::entropy::Entropy;
use quorlock::protocol::fanout::{Act, Link};
use quorlock::protocol::fencing::shard;
use quorlock::protocol::policy::Policy;
use quorlock::protocol::quorum::MasterId;
use quorlock::protocol::time::Moment;
use quorlock::protocol::votes::{Fault, Vote};
use quorlock::transport::memory::Master;
use quorlock::transport::{Ask, LinkWatcher, Refused, Transport};
use quorlock::{LockRequest, Redlock};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

pub(crate) const RESOURCE: &str = "order:1";
pub(crate) const THREE: [&str; 3] = ["stock:1", RESOURCE, "stock:2"];
pub(crate) const TTL: Duration = Duration::from_secs(6);
/// The default of the policy; a command without an answer is unknown after it.
pub(crate) const MASTER_TIMEOUT: Duration = Duration::from_millis(500);
/// No master.
pub(crate) const NOWHERE: [usize; 0] = [];
/// Tokio's timers are exact to a millisecond and never early.
pub(crate) const TICK: Duration = Duration::from_millis(1);

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What happens to commands for one master.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// How long a command takes to get there, and its answer to come back.
    pub(crate) there: Duration,
    pub(crate) back: Duration,
    /// Which commands never arrive, and whose answers never come back.
    pub(crate) lost: fn(Act) -> bool,
    pub(crate) unanswered: fn(Act) -> bool,
    /// No connection: commands are refused at once.
    pub(crate) down: bool,
}

impl Weather {
    pub(crate) const CALM: Self = Self {
        there: Duration::ZERO,
        back: Duration::ZERO,
        lost: |_| false,
        unanswered: |_| false,
        down: false,
    };
    pub(crate) const DOWN: Self = Self { down: true, ..Self::CALM };
    /// Everything is lost.
    pub(crate) const LOST: Self = Self { lost: |_| true, ..Self::CALM };
    /// Everything is done, and no answer comes back.
    pub(crate) const MUTE: Self = Self { unanswered: |_| true, ..Self::CALM };

    pub(crate) const fn far(there: u64, back: u64) -> Self {
        Self { there: millis(there), back: millis(back), ..Self::CALM }
    }
}

/// One command that a master executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) sent: Instant,
    pub(crate) at: Instant,
    pub(crate) master: usize,
    pub(crate) act: Act,
    /// The first, of several.
    pub(crate) resource: Bytes,
    pub(crate) holder: Bytes,
    pub(crate) vote: Vote,
}

/// A client as the masters know it.
#[derive(Debug)]
struct Client {
    watcher: Option<Weak<dyn LinkWatcher>>,
    /// For each master, what is to be told to this client, and the keys of which it is, once each.
    told: Vec<Wire<Bytes>>,
    tracked: Vec<BTreeSet<Bytes>>,
}

/// The masters and all between them and the client. Clones are the same network.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    masters: Arc<Vec<Arc<Mutex<Master>>>>,
    weather: Arc<Mutex<Vec<Weather>>>,
    done: Arc<Mutex<Vec<Done>>>,
    clients: Arc<Mutex<Vec<Client>>>,
    start: Instant,
    /// What the clock showed then.
    origin: Moment,
    /// Whose clock counts, also in threads outside of it.
    runtime: Handle,
    /// What the machine slept, in nanoseconds: time that timers do not see.
    slept: Arc<AtomicU64>,
}

impl Network {
    pub(crate) fn new(masters: usize) -> Self {
        Self {
            masters: Arc::new((0..masters).map(|_| Arc::default()).collect()),
            weather: Arc::new(Mutex::new(vec![Weather::CALM; masters])),
            done: Arc::default(),
            clients: Arc::default(),
            start: Instant::now(),
            origin: Moment::from_nanos(1_000_000_000),
            runtime: Handle::current(),
            slept: Arc::default(),
        }
    }

    /// The same, with another time on its clock.
    pub(crate) fn at(self, origin: Moment) -> Self {
        Self { origin, ..self }
    }

    /// A client over it, with the usual policy.
    pub(crate) fn client(&self) -> Redlock {
        self.client_with(Policy::new())
    }

    pub(crate) fn client_with(&self, policy: Policy) -> Redlock {
        let this = self.clone();
        let clock = Clock::told_by(move || this.now());
        Redlock::over(Wires::new(self), None, policy, clock, Entropy::seeded(7)).expect("five masters")
    }

    /// The clock of the machine and of the masters.
    pub(crate) fn now(&self) -> Moment {
        self.moment(self.instant())
    }

    fn instant(&self) -> Instant {
        let _inside = self.runtime.enter();
        Instant::now()
    }

    pub(crate) fn moment(&self, instant: Instant) -> Moment {
        let slept = Duration::from_nanos(self.slept.load(Ordering::Relaxed));
        self.origin.plus(instant.duration_since(self.start)).plus(slept)
    }

    /// The machine is suspended for so long: its clock and the masters' go on, its timers do not.
    pub(crate) fn suspend(&self, how_long: Duration) {
        self.slept.fetch_add(u64::try_from(how_long.as_nanos()).expect("short"), Ordering::Relaxed);
    }

    pub(crate) fn set(&self, masters: impl IntoIterator<Item = usize>, weather: Weather) {
        masters.into_iter().for_each(|master| locked(&self.weather)[master] = weather);
    }

    /// No two masters have the same number next, so that a token takes two rounds.
    pub(crate) fn let_counters_differ(&self) {
        for (nth, master) in self.masters.iter().enumerate() {
            let number = 5_000_000_000_000_000 + 10 * nth as u64;
            locked(master).recover(&[(shard(RESOURCE.as_bytes()), number)].into());
        }
    }

    pub(crate) fn set_all(&self, weather: &[Weather]) {
        locked(&self.weather).copy_from_slice(weather);
    }

    pub(crate) fn weather(&self) -> Vec<Weather> {
        locked(&self.weather).clone()
    }

    pub(crate) fn master(&self, master: usize) -> MutexGuard<'_, Master> {
        locked(&self.masters[master])
    }

    pub(crate) fn masters(&self) -> usize {
        self.masters.len()
    }

    /// On which masters the resource has a key.
    pub(crate) fn keys_of(&self, resource: &str) -> Vec<usize> {
        let now = self.now();
        let stands = |master: &usize| self.master(*master).value(resource.as_bytes(), now).is_some();
        (0..self.masters()).filter(stands).collect()
    }

    /// On which masters there is any key.
    pub(crate) fn occupied(&self) -> Vec<usize> {
        let now = self.now();
        (0..self.masters()).filter(|master| !self.master(*master).keys(now).is_empty()).collect()
    }

    /// Somebody else's lock on every master.
    pub(crate) fn lock_by_another(&self, resource: &'static str, ttl: Option<Duration>) {
        let now = self.now();
        (0..self.masters()).for_each(|master| self.master(master).set(resource, "web-9:1/other", ttl, now));
    }

    /// What was executed so far.
    pub(crate) fn done(&self) -> Vec<Done> {
        locked(&self.done).clone()
    }

    /// The clients get a new connection to `master`, which has forgotten what it was to tell.
    pub(crate) fn reconnect(&self, master: usize, restarted: bool) {
        let watchers = self.forget_watches(master);
        let master = MasterId::new(master).expect("in range");
        watchers.into_iter().for_each(|watcher| watcher.on_link(master, restarted));
    }

    /// `master` has nothing to tell any more; to whom it would have been.
    pub(crate) fn forget_watches(&self, master: usize) -> Vec<Arc<dyn LinkWatcher>> {
        let forget = |client: &mut Client| {
            client.tracked[master].clear();
            client.watcher.as_ref().and_then(Weak::upgrade)
        };
        locked(&self.clients).iter_mut().filter_map(forget).collect()
    }

    /// The clients heard that much of `master` that they do not know what changed; it has told of all.
    #[allow(dead_code, reason = "not every test program has waiters")]
    pub(crate) fn lag(&self, master: usize) {
        let watchers = self.forget_watches(master);
        let master = MasterId::new(master).expect("in range");
        watchers.into_iter().for_each(|watcher| watcher.on_changed(master, None));
    }

    /// What a master with client tracking does: a read is noted, a change by another is told once. Expiries are not.
    fn track(&self, master: usize, by: usize, ask: &Ask, vote: &Vote, due: Instant) {
        let mut clients = locked(&self.clients);
        for key in ask.keys() {
            match (ask.dispatch().act, vote) {
                (Act::Watch, Vote::Held(_)) | (Act::QueueUp, _) => {
                    clients[by].tracked[master].insert(key.clone());
                }
                (_, Vote::Granted) => {
                    for (nth, client) in clients.iter_mut().enumerate() {
                        if client.tracked[master].remove(key) && nth != by {
                            let _ = client.told[master].send((due, key.clone()));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Whoever listens to a bell that rang is told, once.
    fn ring(&self, master: usize, due: Instant) {
        for bell in self.master(master).take_rung() {
            for client in locked(&self.clients).iter_mut() {
                if client.tracked[master].remove(&bell) {
                    let _ = client.told[master].send((due, bell.clone()));
                }
            }
        }
    }
}

pub(crate) fn request(client: &Redlock) -> LockRequest {
    client.lock(RESOURCE).ttl(TTL)
}

/// The same resource and two more, all or none.
pub(crate) fn request_of_three(client: &Redlock) -> LockRequest {
    client.lock_all(THREE).ttl(TTL)
}

/// Polls `future` `polls` times and drops it, unless it ends before.
pub(crate) async fn polled<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut left = polls;
    std::future::poll_fn(move |cx| {
        if left == 0 {
            return std::task::Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
            std::task::Poll::Pending if left == 0 => std::task::Poll::Ready(None),
            std::task::Poll::Pending => std::task::Poll::Pending,
        }
    })
    .await
}

pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The client's end.
#[derive(Debug)]
struct Wires {
    names: Vec<String>,
    network: Network,
    /// Which of the network's clients this is.
    number: usize,
    unsent: Vec<Wire<(Ask, Instant)>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Wires {
    fn new(network: &Network) -> Self {
        let mut wires = Self {
            names: (1..=network.masters()).map(|nth| format!("m{nth}.test")).collect(),
            network: network.clone(),
            number: locked(&network.clients).len(),
            unsent: Vec::new(),
            tasks: Vec::new(),
        };
        let tracked = vec![BTreeSet::new(); network.masters()];
        locked(&network.clients).push(Client { watcher: None, told: Vec::new(), tracked });
        (0..network.masters()).for_each(|master| wires.lay(master));
        wires
    }

    fn lay(&mut self, master: usize) {
        let lost = self.wire(|ask: Ask| ask.answer(Vote::Unknown(Fault::TimedOut), Link(1)));
        let back = self.wire(|(ask, vote, number): (Ask, Vote, Option<u64>)| {
            ask.answer_numbered(vote, number, Link(1));
        });
        let (network, client) = (self.network.clone(), self.number);
        let told = self.wire(move |key: Bytes| {
            let watcher = locked(&network.clients)[client].watcher.as_ref().and_then(Weak::upgrade);
            if let Some(watcher) = watcher {
                watcher.on_changed(MasterId::new(master).expect("in range"), Some(&key));
            }
        });
        locked(&self.network.clients)[client].told.push(told);
        let network = self.network.clone();
        let timeout = lost.clone();
        let (there, _) = wire(move |(ask, sent): (Ask, Instant)| {
            let weather = locked(&network.weather)[master];
            let (now, dispatch) = (Instant::now(), *ask.dispatch());
            let (vote, number) = locked(&network.masters[master]).answer(&ask, network.now());
            network.track(master, client, &ask, &vote, now + weather.back);
            network.ring(master, now + weather.back);
            let (act, holder) = (dispatch.act, ask.holder());
            let resource = ask.keys().first().cloned().unwrap_or_default();
            locked(&network.done).push(Done {
                sent,
                at: now,
                master,
                act,
                resource,
                holder,
                vote: vote.clone(),
            });
            let _ = if (weather.unanswered)(act) {
                timeout.send((sent + MASTER_TIMEOUT, ask)).is_ok()
            } else {
                back.send((now + weather.back, (ask, vote, number))).is_ok()
            };
        });
        let network = self.network.clone();
        let unsent = self.wire(move |(ask, handed_over): (Ask, Instant)| {
            let weather = locked(&network.weather)[master];
            let now = Instant::now();
            if !ask.is_wanted() {
                ask.withdraw(Fault::Withdrawn);
            } else if (weather.lost)(ask.dispatch().act) {
                let _ = lost.send((now + MASTER_TIMEOUT, ask));
            } else {
                let _ = there.send((now + weather.there, (ask, handed_over)));
            }
        });
        self.unsent.push(unsent);
    }

    /// A wire that is cut when the transport is closed.
    fn wire<T: Send + 'static>(&mut self, out: impl FnMut(T) + Send + 'static) -> Wire<T> {
        let (sender, task) = wire(out);
        self.tasks.push(task);
        sender
    }
}

type Wire<T> = UnboundedSender<(Instant, T)>;

/// A queue whose items come out in order, each not before its time.
fn wire<T: Send + 'static>(mut out: impl FnMut(T) + Send + 'static) -> (Wire<T>, JoinHandle<()>) {
    let (sender, mut items) = unbounded_channel::<(Instant, T)>();
    #[allow(clippy::disallowed_methods, reason = "it ends with its sender")]
    let task = tokio::spawn(async move {
        while let Some((due, item)) = items.recv().await {
            if due > Instant::now() {
                sleep_until(due).await;
            }
            out(item);
        }
    });
    (sender, task)
}

impl Transport for Wires {
    fn masters(&self) -> &[String] {
        &self.names
    }

    fn send(&self, ask: Ask) -> Result<(), Refused> {
        let master = ask.to().index();
        if locked(&self.network.weather)[master].down {
            return Err(Refused::new(ask, Fault::NotConnected("connection refused".into())));
        }
        let now = self.network.instant();
        self.unsent[master]
            .send((now, (ask, now)))
            .map_err(|unsent| Refused::new(unsent.0.1.0, Fault::Closed))
    }

    fn tells(&self, master: MasterId) -> bool {
        !locked(&self.network.weather)[master.index()].down
    }

    fn attach(&self, watcher: Weak<dyn LinkWatcher>) {
        locked(&self.network.clients)[self.number].watcher = Some(watcher);
    }

    /// What is on its way to a master arrives all the same.
    fn close(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Drop for Wires {
    fn drop(&mut self) {
        self.close();
    }
}
