//! Puts the planned faults in place, and takes them away.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use quorlock::testbed::{Data, Fault, Outcome, Proxy, Reply, Testbed};
use rustix::process::Signal;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, sleep_until};

use crate::crew::Crew;
use crate::history::Event;
use crate::log::Log;
use crate::plan::{Kind, Planned};

pub(crate) struct Nemesis {
    pub(crate) bed: Arc<Testbed>,
    /// By client, then by master.
    pub(crate) ways: Vec<Vec<Proxy>>,
    pub(crate) crew: Mutex<Crew>,
    pub(crate) log: Log,
    pub(crate) resources: Vec<String>,
    pub(crate) ttl: Duration,
    pub(crate) fenced: bool,
    /// One fault at a time on each master, each client, and on the ways.
    turns: Vec<Arc<Mutex<()>>>,
}

/// How long a fault that breaks an assumption waits for a lock to break.
const PATIENCE: Duration = Duration::from_secs(2);

impl Nemesis {
    pub(crate) fn new(
        bed: Arc<Testbed>,
        ways: Vec<Vec<Proxy>>,
        crew: Crew,
        log: Log,
        resources: Vec<String>,
        ttl: Duration,
        fenced: bool,
    ) -> Self {
        let turns = (0..=bed.masters().len() + ways.len()).map(|_| Arc::default()).collect();
        Self { bed, ways, crew: Mutex::new(crew), log, resources, ttl, fenced, turns }
    }

    pub(crate) async fn strike(self: Arc<Self>, id: u64, planned: Planned, began: tokio::time::Instant) {
        sleep_until(began + planned.after).await;
        let _turn = self.turn(&planned).await;
        let at_a_lock = planned.kind.breaks_an_assumption() || planned.kind == Kind::ThreeAtOnce;
        let lock = if at_a_lock { self.wait_for_a_lock().await } else { None };
        let (resource, holder) = lock.unwrap_or_else(|| (self.resources[0].clone(), None));
        let holder = holder.filter(|_| planned.kind == Kind::ThreeAtOnce);
        let on = if planned.kind.is_on_clients() { "c" } else { "m" };
        let on = planned.on.iter().map(|index| format!("{on}{}", index + 1));
        let on = on.chain(holder.map(|client| format!("c{}", client + 1))).collect();
        let word = match planned.kind {
            Kind::ClockStep => format!("{}={}", planned.kind.word(), self.ttl.as_millis()),
            Kind::Del => format!("{}={resource}", planned.kind.word()),
            kind => kind.word().to_owned(),
        };
        self.log.say(Event::Fault { id, word, on });
        // Its holder shall not see that they restarted.
        for way in holder.iter().flat_map(|client| &self.ways[*client]) {
            let _ = way.inject(Fault::Cut).await;
        }
        match self.inject(&planned, &resource).await {
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
        for way in holder.iter().flat_map(|client| &self.ways[*client]) {
            let _ = way.undo(Fault::Cut).await;
        }
    }

    /// In the order of their numbers, so that no two wait for each other.
    async fn turn(&self, planned: &Planned) -> Vec<OwnedMutexGuard<()>> {
        let masters = self.bed.masters().len();
        let first = if planned.kind.is_on_clients() { masters } else { 0 };
        let mut wanted: Vec<usize> = planned.on.iter().map(|index| first + index).collect();
        if way_fault(planned.kind).is_some() || planned.kind == Kind::ThreeAtOnce {
            wanted.push(self.turns.len() - 1);
        }
        wanted.sort_unstable();
        let mut turns = Vec::new();
        for index in wanted {
            turns.push(Arc::clone(&self.turns[index]).lock_owned().await);
        }
        turns
    }

    /// Until somebody has just got a lock, or renewed it: then it is a third of the ttl until the next renewal can
    /// notice what became of it, and nearly all of the ttl until its holder would have to give up by himself. Names
    /// the resource and the client, from 0.
    async fn wait_for_a_lock(&self) -> Option<(String, Option<usize>)> {
        let fresh = i64::try_from(self.ttl.as_millis()).unwrap_or(i64::MAX) - 60;
        let end = tokio::time::Instant::now() + PATIENCE;
        while tokio::time::Instant::now() < end {
            for resource in &self.resources {
                let (bed, key) = (Arc::clone(&self.bed), resource.clone());
                let found = spawn_blocking(move || {
                    let mut masters = bed.masters().iter();
                    let master = masters.find(|master| master.pttl(&key).is_ok_and(|left| left > fresh))?;
                    master.get(&key).ok().flatten()
                });
                if let Ok(Some(holder)) = found.await {
                    // `c2/…`
                    let name = String::from_utf8_lossy(&holder).into_owned();
                    let number =
                        name.strip_prefix('c').and_then(|name| name.split('/').next()?.parse::<usize>().ok());
                    let client = number.and_then(|number| number.checked_sub(1));
                    return Some((resource.clone(), client.filter(|client| *client < self.ways.len())));
                }
            }
            sleep(Duration::from_millis(4)).await;
        }
        None
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
            Kind::RestartEmpty => Fault::Restart(Data::Empty),
            // Three that lose their counters together take no part in fencing until an operator sets a floor.
            Kind::ThreeAtOnce => Fault::Restart(if self.fenced { Data::Kept } else { Data::Empty }),
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
