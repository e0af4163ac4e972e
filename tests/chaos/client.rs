//! A client: a process that takes locks, works under them on the register, and tells what it lives through.

use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::time::Duration;

use quorlock::{Guard, Hold, Policy, Redlock};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::dice::Dice;
use crate::fencing;
use crate::history::{Event, MILLI, Nanos, Op};
use crate::log::{Log, now};
use crate::mutant::Mutant;
use crate::register::{Answer, Request};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// Its first claim's number. One that was killed is followed by another of the same name.
    pub(crate) first_claim: u64,
    pub(crate) seed: u64,
    pub(crate) masters: Vec<String>,
    pub(crate) register: SocketAddr,
    pub(crate) resources: Vec<String>,
    pub(crate) ttl: Duration,
    pub(crate) max_ttl: Duration,
    pub(crate) fenced: bool,
    /// One claim in so many is slept through.
    pub(crate) oversleep: u64,
    pub(crate) mutant: Option<String>,
}

/// How long one master may take. Many are asked while they are stopped, and nothing here needs to be slow.
const MASTER_TIMEOUT: Duration = Duration::from_millis(250);
const BACKOFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(80));
/// How often a lock is looked at, and how often the process looks whether it stood still, and for how long that is.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const STALL: Nanos = 100 * MILLI;
/// How many milliseconds more a client sleeps, if nobody else has written.
const OVERSLEEPS: u64 = 2_000;
const REGISTER_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn policy(max_ttl: Duration) -> Policy {
    Policy::new().with_master_timeout(MASTER_TIMEOUT).with_max_ttl(max_ttl).with_backoff(BACKOFF.0, BACKOFF.1)
}

/// Until standard input ends.
pub(crate) fn run(part: Part, log: Log) -> Result<(), Box<dyn std::error::Error>> {
    // Killed, `chaos` closes our input, and we end; frozen at that moment, we would never read that.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let mutant = part.mutant.as_deref().map(Mutant::named).transpose()?;
    // One thread, on which a broken rule stays broken.
    if let Some(mutant) = mutant {
        mutant.break_rule();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = end_of_input();
        let mut tasks = JoinSet::new();
        tasks.spawn(notice_stalls(log.clone()));
        let policy = policy(part.max_ttl);
        let builder = Redlock::builder().masters(&part.masters).label(&part.name);
        let redlock = builder.policy(policy).connect().await?;
        let dice = Dice::new(part.seed);
        Client { part, log, redlock: redlock.clone(), dice, mutant, register: None }.work(stop).await;
        let _ = redlock.close().await;
        Ok(())
    })
}

fn end_of_input() -> watch::Receiver<bool> {
    let (tell, stop) = watch::channel(false);
    std::thread::spawn(move || {
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        let _ = tell.send(true);
    });
    stop
}

async fn notice_stalls(log: Log) {
    let mut since = now();
    loop {
        sleep(LOOK_EVERY).await;
        let at = now();
        if at - since > STALL {
            log.say(Event::Stalled { since });
        }
        since = at;
    }
}

struct Client {
    part: Part,
    log: Log,
    redlock: Redlock,
    dice: Dice,
    mutant: Option<Mutant>,
    register: Option<BufReader<TcpStream>>,
}

/// One lock, and what a client knows of it.
struct Errand {
    claim: u64,
    resource: String,
    hold: Hold,
    fence: u64,
}

impl Client {
    async fn work(mut self, mut stop: watch::Receiver<bool>) {
        let mut claim = self.part.first_claim;
        while !*stop.borrow() {
            claim += 1;
            let chosen = self.dice.between(0, self.part.resources.len() as u64 - 1) as usize;
            let resource = self.part.resources[chosen].clone();
            let wait = Duration::from_millis(self.dice.between(200, 2_500));
            let sleeps = claim.wrapping_add(self.part.seed).is_multiple_of(self.part.oversleep);
            self.log.say(Event::Start { claim, resource: resource.clone() });
            let mut request = self.redlock.lock(&resource).ttl(self.part.ttl).wait(wait);
            if sleeps {
                request = request.no_renewal();
            }
            if self.part.fenced {
                request = fencing::ask(request);
            }
            let got = tokio::select! {
                got = request.acquire() => got.map_err(|error| error.to_string()),
                _ = stop.changed() => Err("stopped".into()),
            };
            match got {
                Ok(guard) => self.serve(claim, resource, guard, sleeps, &stop).await,
                Err(why) => {
                    self.log.say(Event::Refused { claim, why });
                    self.pause(5, 40).await;
                }
            }
            self.pause(2, 60).await;
        }
    }

    async fn serve(
        &mut self,
        claim: u64,
        resource: String,
        guard: Guard,
        sleeps: bool,
        stop: &watch::Receiver<bool>,
    ) {
        let hold = guard.hold();
        let (holder, votes) = (guard.holder().to_string(), guard.votes());
        // In this order: a lock that is over has neither.
        let fence = if self.part.fenced { fencing::token(&guard) } else { 0 };
        let deadline = deadline(&hold).unwrap_or_default();
        self.log.say(Event::Granted { claim, holder, deadline, votes, fence });
        let mut watcher = JoinSet::new();
        watcher.spawn(watch_over(self.log.clone(), hold.clone(), claim, deadline));
        let errand = Errand { claim, resource, hold, fence };
        self.log.say(Event::Enter { claim });
        let habit = self.dice.between(0, 9);
        match habit {
            _ if sleeps => self.oversleep(&errand).await,
            0..7 => self.increment(&errand, 5, 40).await,
            _ => self.stay(&errand, stop).await,
        }
        self.log.say(Event::Exit { claim });
        // What it would tell from here on is the end that we make ourselves.
        watcher.shutdown().await;
        if habit < 2 && !sleeps {
            self.log.say(Event::Drop { claim });
            drop(guard);
        } else {
            self.log.say(Event::ReleaseCalled { claim });
            let released = guard.release().await;
            self.log.say(Event::Released { claim, outcome: format!("{released:?}") });
        }
        if self.mutant.is_some_and(Mutant::deletes_blindly) {
            crate::mutant::delete_blindly(&self.part.masters, &errand.resource);
        }
    }

    /// Renewed a few times.
    async fn stay(&mut self, errand: &Errand, stop: &watch::Receiver<bool>) {
        let ttl = u64::try_from(self.part.ttl.as_millis()).unwrap_or(u64::MAX);
        let until = now() + self.dice.between(ttl / 2, ttl * 2) * MILLI;
        while now() < until && errand.hold.is_valid() && !*stop.borrow() {
            self.increment(errand, 5, 60).await;
            self.pause(5, 60).await;
        }
    }

    /// Reads, sleeps until long after the end, where it can until another has written, and writes all the same.
    async fn oversleep(&mut self, errand: &Errand) {
        let Some(value) = self.ask(errand, Op::Read, 0).await else { return };
        sleep(self.part.ttl + Duration::from_millis(self.dice.between(50, 600))).await;
        let until = now() + OVERSLEEPS * MILLI;
        while now() < until && self.ask(errand, Op::Read, 0).await == Some(value) {
            sleep(LOOK_EVERY).await;
        }
        self.ask(errand, Op::Write, value + 1).await;
    }

    /// Where tokens are checked, the lock is looked at only every other time: the register has the last word.
    async fn increment(&mut self, errand: &Errand, least: u64, most: u64) {
        let Some(value) = self.ask(errand, Op::Read, 0).await else { return };
        self.pause(least, most).await;
        let trusting = self.part.fenced && self.dice.between(0, 1) == 0;
        if trusting || errand.hold.is_valid() {
            self.ask(errand, Op::Write, value + 1).await;
        }
    }

    /// A reply that does not come may stand for a write that was done.
    async fn ask(&mut self, errand: &Errand, op: Op, value: u64) -> Answer {
        let (client, claim, fence) = (self.part.name.clone(), errand.claim, errand.fence);
        let resource = errand.resource.clone();
        let request = Request { client, claim, resource, fence, op, value };
        let Ok(Ok(answer)) = timeout(REGISTER_TIMEOUT, self.exchange(&request)).await else {
            self.register = None;
            return None;
        };
        let (value, ack) = (answer.unwrap_or(value), answer.is_some());
        self.log.say(Event::Effect { claim, op, value, fence, ack });
        answer
    }

    async fn exchange(&mut self, request: &Request) -> io::Result<Answer> {
        let stream = match &mut self.register {
            Some(stream) => stream,
            none => none.insert(BufReader::new(TcpStream::connect(self.part.register).await?)),
        };
        stream.get_ref().set_nodelay(true)?;
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        stream.get_mut().write_all(line.as_bytes()).await?;
        line.clear();
        stream.read_line(&mut line).await?;
        Ok(serde_json::from_str(&line)?)
    }

    async fn pause(&mut self, least: u64, most: u64) {
        sleep(Duration::from_millis(self.dice.between(least, most))).await;
    }
}

/// None once the lock is over. Never later than the true one.
fn deadline(hold: &Hold) -> Option<Nanos> {
    loop {
        let (before, remaining, after) = (now(), hold.remaining(), now());
        if remaining.is_zero() {
            return None;
        }
        // Between the two readings of the clock it may have stood still.
        if after - before < MILLI {
            return Some(before + u64::try_from(remaining.as_nanos()).unwrap_or(0));
        }
    }
}

async fn watch_over(log: Log, hold: Hold, claim: u64, mut told: Nanos) {
    let mut at_risk = false;
    let mut seen = now();
    loop {
        tokio::select! {
            biased;
            lost = hold.lost() => {
                log.say(Event::Lost { claim, why: lost.to_string(), seen });
                return;
            }
            () = hold.at_risk(), if !at_risk => {
                at_risk = true;
                log.say(Event::AtRisk { claim });
            }
            () = sleep(LOOK_EVERY) => {}
        }
        let at = now();
        let Some(deadline) = deadline(&hold) else { continue };
        seen = at;
        // What a reading of the clock costs moves it, too.
        if deadline.abs_diff(told) > 2 * MILLI {
            let raised = deadline > told;
            told = deadline;
            log.say(if raised {
                Event::Renewed { claim, deadline }
            } else {
                Event::Lowered { claim, deadline }
            });
        }
    }
}
