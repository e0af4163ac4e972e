//! Real time: the monotonic clock itself, and waiting for a moment of it.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The monotonic clock itself. Tokio's stands still in tests that pause it; a server process does not.
pub(super) fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
}

/// Wakes a task at a moment, some 50 µs late. Tokio's own timer counts in milliseconds and rounds up, which would make
/// a delay of 1 ms one of 2.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: AsyncFd<OwnedFd>,
    set: Option<Duration>,
}

impl Alarm {
    #[allow(
        deprecated,
        reason = "its heir is unsafe, for types that may not own what they name; an OwnedFd does"
    )]
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { timer: AsyncFd::with_interest(timer, Interest::READABLE)?, set: None })
    }

    /// Returns at `moment`, or at once if that is over. May be dropped and asked again.
    pub(super) async fn at(&mut self, moment: Duration) -> io::Result<()> {
        if moment <= now() {
            return Ok(());
        }
        if self.set != Some(moment) {
            let spec = Itimerspec {
                it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
                it_value: Timespec::try_from(moment).map_err(io::Error::other)?,
            };
            timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &spec)?;
            self.set = Some(moment);
        }
        loop {
            let mut ready = self.timer.readable().await?;
            // Ready may be left over from an earlier moment; then reading would block.
            let rang = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut [0; 8])?));
            if let Ok(rang) = rang {
                self.set = None;
                return rang.map(drop);
            }
        }
    }
}
