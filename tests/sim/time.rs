//! The time as each machine sees it. Real time is virtual: nanoseconds since the run began, known only to the run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quorlock::protocol::time::Moment;
use tokio::runtime::Handle;
use tokio::time::Instant;

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000 * US;
pub(crate) const S: u64 = 1_000 * MS;

/// A clock that is fast or slow, and set wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) offset: u64,
    /// Millionths; negative for a slow clock.
    pub(crate) ppm: i64,
}

impl Rate {
    const MILLION: i128 = 1_000_000;

    pub(crate) fn at(self, real: u64) -> Moment {
        let shown = i128::from(real) * (Self::MILLION + i128::from(self.ppm)) / Self::MILLION;
        Moment::from_nanos(self.offset + u64::try_from(shown).expect("rates are small"))
    }

    /// The first real moment at which the clock shows `moment` or more.
    pub(crate) fn real_of(self, moment: Moment) -> u64 {
        let shown = i128::from(moment.as_nanos().saturating_sub(self.offset)) * Self::MILLION;
        let rate = Self::MILLION + i128::from(self.ppm);
        u64::try_from((shown + rate - 1) / rate).unwrap_or(u64::MAX)
    }
}

/// The clocks of one client's machine: the one that its timers run by, and the one that decisions read.
///
/// Timers tick in whole milliseconds, and with them everything on the machine; `base` is where in real time they
/// began to count, moved by a suspend, which they do not see.
#[derive(Debug)]
pub(crate) struct MachineClock {
    runtime: Handle,
    start: Instant,
    base: AtomicU64,
    /// Time that passed in the middle of a task, and that timers were not told of yet.
    stalled: AtomicU64,
    /// Time that passed while the machine was out, and that timers are about to be told of.
    lag: AtomicU64,
    pub(crate) rate: Rate,
    planned: Mutex<Option<Stall>>,
    /// Nobody but the run itself is looking.
    unseen: AtomicBool,
}

/// The machine does nothing for a while, right after one of the next looks at the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stall {
    pub(crate) reads: u64,
    pub(crate) millis: u64,
}

impl MachineClock {
    pub(crate) fn new(runtime: Handle, base: u64, rate: Rate) -> Self {
        let start = {
            let _inside = runtime.enter();
            Instant::now()
        };
        Self {
            runtime,
            start,
            base: AtomicU64::new(base),
            stalled: AtomicU64::new(0),
            lag: AtomicU64::new(0),
            rate,
            planned: Mutex::new(None),
            unseen: AtomicBool::new(false),
        }
    }

    /// What timers have counted.
    pub(crate) fn local(&self) -> u64 {
        let _inside = self.runtime.enter();
        nanos(Instant::now().duration_since(self.start))
    }

    pub(crate) fn real(&self) -> u64 {
        let told = self.base.load(Ordering::Relaxed) + self.local();
        told + self.stalled.load(Ordering::Relaxed) + self.lag.load(Ordering::Relaxed)
    }

    /// The timers' last tick at the real time `real`.
    pub(crate) fn tick(&self, real: u64) -> u64 {
        let local = real.saturating_sub(self.base.load(Ordering::Relaxed));
        local - local % MS
    }

    /// The first tick at or after `real`.
    pub(crate) fn next_tick(&self, real: u64) -> u64 {
        let base = self.base.load(Ordering::Relaxed);
        base + real.saturating_sub(base).div_ceil(MS) * MS
    }

    pub(crate) fn instant(&self, local: u64) -> Instant {
        self.start + Duration::from_nanos(local)
    }

    /// The machine slept: real time went on, timers did not.
    pub(crate) fn slept(&self, nanos: u64) {
        self.base.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(crate) fn stalled(&self) -> u64 {
        self.stalled.load(Ordering::Relaxed)
    }

    /// Nothing happens from now on for so long.
    pub(crate) fn stall(&self, millis: u64) {
        self.stalled.fetch_add(millis * MS, Ordering::Relaxed);
    }

    /// The stall is over: its time is to be told of.
    pub(crate) fn end_stall(&self) {
        self.lag.fetch_add(self.stalled.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    pub(crate) fn lag_by(&self, nanos: u64) {
        self.lag.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(crate) fn take_lag(&self) -> u64 {
        self.lag.swap(0, Ordering::Relaxed)
    }

    pub(crate) fn plan(&self, stall: Option<Stall>) {
        *self.planned.lock().unwrap_or_else(PoisonError::into_inner) = stall;
    }

    /// A look by the client; `stalled` is called if time then passes before the client can do anything with it.
    pub(crate) fn tell(&self, stalled: impl FnOnce(u64)) -> Moment {
        let now = self.rate.at(self.real());
        if self.unseen.load(Ordering::Relaxed) {
            return now;
        }
        let due = {
            let mut planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut *planned {
                Some(stall) if stall.reads > 0 => {
                    stall.reads -= 1;
                    None
                }
                stall => stall.take(),
            }
        };
        if let Some(stall) = due {
            self.stall(stall.millis);
            stalled(stall.millis);
        }
        now
    }

    /// Looks on behalf of the run: no stall begins in it.
    pub(crate) fn unseen<T>(&self, look: impl FnOnce() -> T) -> T {
        let before = self.unseen.swap(true, Ordering::Relaxed);
        let seen = look();
        self.unseen.store(before, Ordering::Relaxed);
        seen
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("short")
}
