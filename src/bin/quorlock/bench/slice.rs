//! One contender at work for a short while.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tokio::task::JoinSet;

use super::arms::{Arm, Kind};
use super::contender::Contender;
use super::sums::quantile;
use super::{keys, stop};

/// What the last slice left on the wire may arrive.
const CALM: Duration = Duration::from_millis(3);

/// When a slice ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    After(Duration),
    Cycles(usize),
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Slice {
    pub(crate) wall: Duration,
    /// Of this process: user and system, all threads.
    pub(crate) cpu: Duration,
    /// One entry a cycle, in nanoseconds.
    pub(crate) acquire: Vec<u32>,
    pub(crate) release: Vec<u32>,
}

impl Slice {
    pub(crate) fn add(&mut self, other: Self) {
        self.wall += other.wall;
        self.cpu += other.cpu;
        self.acquire.extend(other.acquire);
        self.release.extend(other.release);
    }

    pub(crate) fn figures(mut self) -> Figures {
        let cycles = self.acquire.len().max(1) as f64;
        let micros = |samples: &mut [u32], q| f64::from(quantile(samples, q)) / 1e3;
        Figures {
            acquire_p50: micros(&mut self.acquire, 0.5),
            acquire_p99: micros(&mut self.acquire, 0.99),
            acquire_p999: micros(&mut self.acquire, 0.999),
            release_p50: micros(&mut self.release, 0.5),
            release_p99: micros(&mut self.release, 0.99),
            rate: cycles / self.wall.as_secs_f64(),
            cpu: self.cpu.as_secs_f64() * 1e6 / cycles,
            cycles,
        }
    }
}

/// A slice in numbers: microseconds, cycles a second, microseconds of CPU a cycle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) acquire_p50: f64,
    pub(crate) acquire_p99: f64,
    pub(crate) acquire_p999: f64,
    pub(crate) release_p50: f64,
    pub(crate) release_p99: f64,
    pub(crate) rate: f64,
    pub(crate) cpu: f64,
    pub(crate) cycles: f64,
}

/// Runs `tasks` closed loops of `arm`, each acquiring and releasing a fresh key a cycle.
pub(crate) async fn run(arm: &Arm, tasks: usize, until: Until) -> Result<Slice, String> {
    tokio::time::sleep(CALM).await;
    let slice = match &arm.kind {
        Kind::Ours(ours) => work(ours, tasks, until).await,
        Kind::Bare(bare) => work(bare, tasks, until).await,
        #[cfg(feature = "peers")]
        Kind::Rslock(rslock) => work(rslock, tasks, until).await,
    };
    slice.map_err(|error| format!("{}: {error}", arm.name))
}

async fn work<C: Contender>(contender: &Arc<C>, tasks: usize, until: Until) -> Result<Slice, String> {
    let mut running = JoinSet::new();
    let (began, cpu) = (Instant::now(), cpu_time());
    for _ in 0..tasks {
        running.spawn(closed_loop(contender.clone(), until, began));
    }
    let mut all = Slice::default();
    while let Some(one) = running.join_next().await {
        all.add(one.map_err(|error| error.to_string())??);
    }
    all.wall = began.elapsed();
    all.cpu = cpu_time().saturating_sub(cpu);
    Ok(all)
}

async fn closed_loop<C: Contender>(contender: Arc<C>, until: Until, began: Instant) -> Result<Slice, String> {
    let expected = match until {
        Until::After(time) => usize::try_from(time.as_millis()).unwrap_or(0) * 16,
        Until::Cycles(cycles) => cycles,
    };
    let mut slice = Slice {
        acquire: Vec::with_capacity(expected),
        release: Vec::with_capacity(expected),
        ..Slice::default()
    };
    let mut key = String::new();
    loop {
        keys::fresh(&mut key);
        let asked = Instant::now();
        let lock = contender.acquire(&key).await?;
        let held = Instant::now();
        contender.release(lock).await?;
        let free = Instant::now();
        slice.acquire.push(nanos(held - asked));
        slice.release.push(nanos(free - held));
        let over = match until {
            Until::After(time) => free - began >= time,
            Until::Cycles(cycles) => slice.acquire.len() >= cycles,
        };
        if over || stop::is_raised() {
            return Ok(slice);
        }
    }
}

fn nanos(time: Duration) -> u32 {
    u32::try_from(time.as_nanos()).unwrap_or(u32::MAX)
}

/// What this process has used so far.
pub(crate) fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
