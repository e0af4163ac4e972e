//! Puts the planned faults in place, and takes them away.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quorlock::testbed::{Data, Fault, Outcome, Proxy, Reply, Testbed};
use rustix::process::Signal;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};

use crate::aim::At;
use crate::crew::Crew;
use crate::history::{Event, Nanos};
use crate::log::{Log, now};
use crate::plan::{Kind, Planned};

pub(crate) struct Nemesis {
    pub(crate) bed: Arc<Testbed>,
    /// By client, then by master.
    pub(crate) ways: Vec<Vec<Proxy>>,
    pub(crate) crew: Mutex<Crew>,
    pub(crate) log: Log,
    pub(crate) resources: Vec<String>,
    pub(crate) ttl: Duration,
    /// Where the clients' logs are.
    folder: PathBuf,
    /// One fault at a time on each master, each client, and on the ways.
    turns: Vec<Arc<Mutex<()>>>,
}

/// How long a fault that needs a lock to break waits for one.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(4);

/// A client that is stopped while it holds a lock that another one waits for.
struct Target {
    client: usize,
    resource: String,
    /// When its lock is over.
    deadline: Nanos,
    _turn: OwnedMutexGuard<()>,
}

impl Nemesis {
    pub(crate) fn new(
        bed: Arc<Testbed>,
        ways: Vec<Vec<Proxy>>,
        crew: Crew,
        log: Log,
        resources: Vec<String>,
        ttl: Duration,
        folder: PathBuf,
    ) -> Self {
        let turns = (0..=bed.masters().len() + ways.len()).map(|_| Arc::default()).collect();
        Self { bed, ways, crew: Mutex::new(crew), log, resources, ttl, folder, turns }
    }

    /// `id` is the fault's number, and the next one that of what is done to the holder of a lock for its sake.
    pub(crate) async fn strike(self: Arc<Self>, id: u64, planned: Planned, began: Instant) {
        sleep_until(began + planned.after).await;
        let _turn = self.turn(&planned).await;
        let target = if planned.kind.needs_a_holder() { self.aim(id + 1).await } else { None };
        let resource = target.as_ref().map_or(&self.resources[0], |target| &target.resource);
        let on = if planned.kind.is_on_clients() { "c" } else { "m" };
        let on = planned.on.iter().map(|index| format!("{on}{}", index + 1)).collect();
        let word = match planned.kind {
            Kind::ClockStep => format!("{}={}", planned.kind.word(), self.ttl.as_millis()),
            Kind::Del => format!("{}={resource}", planned.kind.word()),
            kind => kind.word().to_owned(),
        };
        self.log.say(Event::Fault { id, word, on });
        match self.inject(&planned, resource).await {
            Ok(()) => {
                sleep(planned.lasts).await;
                // A fault that stays would show as a run in which nothing is granted any more.
                let _ = self.undo(&planned).await;
                self.log.say(Event::Healed { id });
            }
            // What is half in place is taken away, too.
            Err(error) => {
                let _ = self.undo(&planned).await;
                self.log.say(Event::Skipped { id, why: error.to_string() });
            }
        }
        if let Some(target) = target {
            sleep(Duration::from_nanos(target.deadline.saturating_sub(now()))).await;
            let _ = self.signal(&[target.client], Signal::CONT).await;
            self.log.say(Event::Healed { id: id + 1 });
        }
    }

    /// In the order of their numbers, so that no two wait for each other.
    async fn turn(&self, planned: &Planned) -> Vec<OwnedMutexGuard<()>> {
        let masters = self.bed.masters().len();
        let first = if planned.kind.is_on_clients() { masters } else { 0 };
        let mut wanted: Vec<usize> = planned.on.iter().map(|index| first + index).collect();
        if way_fault(planned.kind).is_some() {
            wanted.push(self.turns.len() - 1);
        }
        wanted.sort_unstable();
        let mut turns = Vec::new();
        for index in wanted {
            turns.push(Arc::clone(&self.turns[index]).lock_owned().await);
        }
        turns
    }

    /// Until a client is stopped that has just got a lock, or renewed it, while another one waits for it. Stopped, it can
    /// neither give it back nor notice what becomes of it, and the lock is its own for most of the ttl.
    async fn aim(&self, id: u64) -> Option<Target> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            for client in 0..self.ways.len() {
                if let Some(target) = self.stop_holder(client).await {
                    let (word, on) = (Kind::FreezeClient.word().to_owned(), vec![name(client)]);
                    self.log.say(Event::Fault { id, word, on });
                    return Some(target);
                }
            }
            sleep(LOOK_EVERY).await;
        }
        None
    }

    /// It goes on if it turns out not to hold, or nobody comes.
    async fn stop_holder(&self, client: usize) -> Option<Target> {
        self.fresh_lock(client)?;
        let turn = Arc::clone(&self.turns[self.bed.masters().len() + client]).try_lock_owned().ok()?;
        self.signal(&[client], Signal::STOP).await.ok()?;
        // It may run on for an instant.
        sleep(LOOK_EVERY).await;
        while let Some((resource, deadline)) = self.fresh_lock(client) {
            let asks = |other| matches!(self.at(other), At::Asks { resource: wanted } if wanted == resource);
            if (0..self.ways.len()).any(asks) {
                return Some(Target { client, resource, deadline, _turn: turn });
            }
            sleep(LOOK_EVERY).await;
        }
        let _ = self.signal(&[client], Signal::CONT).await;
        None
    }

    fn at(&self, client: usize) -> At {
        At::of(&self.folder, &name(client)).unwrap_or(At::Else)
    }

    /// A lock that is its own for three quarters of the ttl and more, and until when.
    fn fresh_lock(&self, client: usize) -> Option<(String, Nanos)> {
        let At::Holds { resource, deadline } = self.at(client) else { return None };
        let enough = u64::try_from(self.ttl.as_nanos()).unwrap_or(Nanos::MAX) / 4 * 3;
        (deadline > now() + enough).then_some((resource, deadline))
    }

    async fn inject(&self, planned: &Planned, resource: &str) -> io::Result<()> {
        let on = &planned.on;
        if let Some(fault) = way_fault(planned.kind) {
            for way in self.ways_of(planned) {
                installed(&way.inject(fault).await)?;
            }
            return Ok(());
        }
        match planned.kind {
            Kind::FreezeClient => self.signal(on, Signal::STOP).await,
            Kind::KillClient => {
                for client in on {
                    self.crew.lock().await.kill(*client).await?;
                }
                Ok(())
            }
            Kind::ScriptFlush => self.command(on, &["SCRIPT", "FLUSH"]).await,
            Kind::ClientKill => {
                self.command(on, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await
            }
            Kind::Del => self.command(on, &["DEL", resource]).await,
            Kind::Evict => {
                self.command(on, &["CONFIG", "SET", "maxmemory-policy", "allkeys-random"]).await?;
                self.masters(on, |master| master.inject(Fault::OutOfMemory)).await
            }
            Kind::RestartOld => {
                self.masters(on, |master| master.inject(Fault::Snapshot)).await?;
                // Long enough for other locks to be there by then.
                sleep(self.ttl / 4).await;
                self.masters(on, |master| master.inject(Fault::Restart(Data::Old))).await
            }
            kind => {
                let Some(fault) = self.master_fault(kind) else { return Ok(()) };
                self.masters(on, move |master| master.inject(fault)).await
            }
        }
    }

    async fn undo(&self, planned: &Planned) -> io::Result<()> {
        let on = &planned.on;
        if let Some(fault) = way_fault(planned.kind) {
            for way in self.ways_of(planned) {
                let _ = way.undo(fault).await;
            }
            return Ok(());
        }
        match planned.kind {
            Kind::FreezeClient => self.signal(on, Signal::CONT).await,
            Kind::KillClient => {
                let mut crew = self.crew.lock().await;
                on.iter().try_for_each(|client| crew.revive(*client))
            }
            Kind::Evict => {
                self.masters(on, |master| master.undo(Fault::OutOfMemory)).await?;
                self.command(on, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]).await
            }
            Kind::Kill
            | Kind::Freeze
            | Kind::OutOfMemory
            | Kind::PauseWrites
            | Kind::ClockSlew
            | Kind::ClockStep => {
                let Some(fault) = self.master_fault(planned.kind) else { return Ok(()) };
                self.masters(on, move |master| master.undo(fault)).await
            }
            _ => Ok(()),
        }
    }

    fn master_fault(&self, kind: Kind) -> Option<Fault> {
        Some(match kind {
            Kind::Kill => Fault::Kill,
            Kind::RestartEmpty | Kind::ThreeAtOnce => Fault::Restart(Data::Empty),
            Kind::Freeze => Fault::Freeze,
            // Half of what the drift allows for.
            Kind::ClockSlew => Fault::ClockSlew(5_000),
            Kind::OutOfMemory => Fault::OutOfMemory,
            Kind::PauseWrites => Fault::PauseWrites(PATIENCE),
            Kind::ClockStep => Fault::ClockStep(i64::try_from(self.ttl.as_millis()).unwrap_or(i64::MAX)),
            Kind::Flush => Fault::Flush,
            _ => return None,
        })
    }

    fn ways_of(&self, planned: &Planned) -> Vec<&Proxy> {
        if planned.kind == Kind::CutClient {
            planned.on.iter().flat_map(|client| &self.ways[*client]).collect()
        } else {
            planned.on.iter().flat_map(|master| self.ways.iter().map(move |ways| &ways[*master])).collect()
        }
    }

    async fn signal(&self, clients: &[usize], signal: Signal) -> io::Result<()> {
        let crew = self.crew.lock().await;
        clients.iter().try_for_each(|client| crew.signal(*client, signal))
    }

    /// At once on all of them.
    async fn masters(
        &self,
        on: &[usize],
        act: impl Fn(&quorlock::testbed::LocalMaster) -> Outcome + Clone + Send + 'static,
    ) -> io::Result<()> {
        let acts = on.iter().map(|index| {
            let (bed, act, index) = (Arc::clone(&self.bed), act.clone(), *index);
            spawn_blocking(move || act(&bed[index]))
        });
        for outcome in acts.collect::<Vec<_>>() {
            installed(&outcome.await?)?;
        }
        Ok(())
    }

    async fn command(&self, on: &[usize], words: &[&str]) -> io::Result<()> {
        let words: Vec<String> = words.iter().copied().map(String::from).collect();
        let asks = on.iter().map(|index| {
            let (bed, words, index) = (Arc::clone(&self.bed), words.clone(), *index);
            spawn_blocking(move || bed[index].command(&words))
        });
        for reply in asks.collect::<Vec<_>>() {
            if let Reply::Error(refusal) = reply.await?? {
                return Err(io::Error::other(refusal));
            }
        }
        Ok(())
    }
}

fn name(client: usize) -> String {
    format!("c{}", client + 1)
}

fn way_fault(kind: Kind) -> Option<Fault> {
    Some(match kind {
        Kind::CutMinority | Kind::CutMajority | Kind::CutClient => Fault::Cut,
        Kind::LoseReplies => Fault::LoseReplies,
        Kind::LoseRequests => Fault::LoseRequests,
        Kind::Slow => Fault::Slow(Duration::from_millis(60)),
        Kind::Reset => Fault::Reset,
        Kind::Refuse => Fault::Refuse,
        _ => return None,
    })
}

fn installed(outcome: &Outcome) -> io::Result<()> {
    if outcome.is_installed() { Ok(()) } else { Err(io::Error::other(outcome.to_string())) }
}
