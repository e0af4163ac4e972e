//! The one clock that decisions read.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::protocol::time::Moment;

/// Tells the time since an origin of its own. Never goes back.
///
/// On Linux it is `CLOCK_BOOTTIME`, which goes on while the machine is suspended: a laptop that slept for an hour
/// wakes up without its locks (hazard H33). `Instant` would not notice. Elsewhere it is the monotonic clock, and a
/// lease must not be trusted across a suspend.
#[derive(Clone)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    Boot,
    Told(Arc<dyn Fn() -> Moment + Send + Sync>),
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub const fn boot() -> Self {
        Self(Source::Boot)
    }

    /// A clock that says what `tell` says: for simulations.
    pub fn told_by(tell: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Self(Source::Told(Arc::new(tell)))
    }

    /// The wall clock in microseconds: what a claim proposes as its fencing token.
    pub(crate) fn proposal(&self) -> u64 {
        match &self.0 {
            Source::Boot => wall_clock(),
            Source::Told(tell) => tell().as_nanos() / 1_000,
        }
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Moment {
        match &self.0 {
            Source::Boot => boot_time(),
            Source::Told(tell) => tell(),
        }
    }
}

/// Microseconds since 1970, as far as this machine knows.
#[allow(
    clippy::disallowed_methods,
    reason = "no decision rests on it: it proposes numbers, which may be any"
)]
fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

fn boot_time() -> Moment {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let id = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let id = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(id);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Moment::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::Boot => "Clock(boot)",
            Source::Told(_) => "Clock(told)",
        })
    }
}
