//! The numbers one fleet agrees on, checked before they are used.

use std::fmt;
use std::time::Duration;

use super::mutant::{self, Mutant};

/// Timing rules of a client. The defaults suit five masters in several datacentres.
///
/// `max_ttl` belongs to the fleet: every client of the same masters must use the same value, since a master that
/// restarted keeps silent for just that long (hazard H39).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    drift_ppm: u32,
    master_timeout: Duration,
    max_ttl: Duration,
    backoff_floor: Duration,
    backoff_cap: Duration,
}

impl Policy {
    /// The largest drift factor allowed: 10 %, enough for the fastest slew chrony does by default (hazard H7).
    pub const MOST_DRIFT_PPM: u32 = 100_000;
    /// The longest `max_ttl` allowed: a day.
    pub const MOST_TTL: Duration = Duration::from_secs(24 * 60 * 60);

    /// Drift factor 1 %, 500 ms per master, ttl up to 60 s, back-off from 25 ms to 500 ms.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            drift_ppm: 10_000,
            master_timeout: Duration::from_millis(500),
            max_ttl: Duration::from_secs(60),
            backoff_floor: Duration::from_millis(25),
            backoff_cap: Duration::from_millis(500),
        }
    }

    /// The same with a clock-drift allowance of `ppm` millionths of the ttl (10 000 is 1 %).
    ///
    /// It must cover the rate error of this machine's clock and of any master's, added. NTP daemons that slew at
    /// 500 ppm are well inside 1 %; chrony may slew at 83 333 ppm unless `maxslewrate` is lowered.
    #[must_use]
    pub const fn with_drift_ppm(self, ppm: u32) -> Self {
        Self { drift_ppm: ppm, ..self }
    }

    /// The same with another time limit for one master's answer.
    #[must_use]
    pub const fn with_master_timeout(self, timeout: Duration) -> Self {
        Self { master_timeout: timeout, ..self }
    }

    /// The same with another longest ttl of the fleet.
    #[must_use]
    pub const fn with_max_ttl(self, ttl: Duration) -> Self {
        Self { max_ttl: ttl, ..self }
    }

    /// The same with another range of pauses between claims.
    #[must_use]
    pub const fn with_backoff(self, floor: Duration, cap: Duration) -> Self {
        Self { backoff_floor: floor, backoff_cap: cap, ..self }
    }

    /// The time limit for one master's answer.
    #[must_use]
    pub const fn master_timeout(&self) -> Duration {
        self.master_timeout
    }

    /// The longest ttl any client of this fleet asks for.
    #[must_use]
    pub const fn max_ttl(&self) -> Duration {
        self.max_ttl
    }

    /// How long a master that may have forgotten keeps silent: the longest ttl and its drift (safety of quarantine).
    #[must_use]
    pub fn quarantine(&self) -> Duration {
        let least = if mutant::on(Mutant::QuarantineTooShort) { Duration::ZERO } else { self.max_ttl };
        least.saturating_add(self.drift(self.max_ttl))
    }

    /// ⌈factor · ttl⌉ + 2 ms, in whole milliseconds: 1 ms for the masters' expiry precision, 1 ms as the least
    /// drift of small ttls. Integers only, rounded up, so never optimistic (hazards H7, H8).
    #[must_use]
    pub fn drift(&self, ttl: Duration) -> Duration {
        let millis = ttl.as_millis().saturating_mul(u128::from(self.drift_ppm));
        let millis = u64::try_from(millis.div_ceil(1_000_000)).unwrap_or(u64::MAX);
        Duration::from_millis(millis.saturating_add(2))
    }

    /// The pause before claim number `claim + 1`, drawn by `dice`: between a quarter and the whole of a ceiling that
    /// doubles from the floor to the cap, so that contenders who collided once do not collide again (hazard H37).
    #[must_use]
    pub fn backoff(&self, claim: u32, dice: u64) -> Duration {
        let ceiling = self.backoff_floor.saturating_mul(1u32 << claim.min(16)).min(self.backoff_cap);
        let least = ceiling / 4;
        let spread = u64::try_from((ceiling - least).as_nanos()).unwrap_or(u64::MAX);
        least + Duration::from_nanos(if spread == 0 { 0 } else { dice % spread })
    }

    /// Refuses numbers that cannot work, before anything uses them.
    ///
    /// # Errors
    ///
    /// Names the first value that is out of range, and the range.
    pub fn check(&self) -> Result<(), PolicyError> {
        if self.drift_ppm == 0 || self.drift_ppm > Self::MOST_DRIFT_PPM {
            return Err(PolicyError::Drift { ppm: self.drift_ppm });
        }
        if self.master_timeout < Duration::from_millis(1) || self.master_timeout > Duration::from_secs(60) {
            return Err(PolicyError::MasterTimeout { timeout: self.master_timeout });
        }
        let least = self.master_timeout * 2;
        if self.max_ttl < least || self.max_ttl > Self::MOST_TTL {
            return Err(PolicyError::MaxTtl { max_ttl: self.max_ttl, least });
        }
        if self.backoff_floor < Duration::from_millis(1) || self.backoff_floor > self.backoff_cap {
            return Err(PolicyError::Backoff { floor: self.backoff_floor, cap: self.backoff_cap });
        }
        Ok(())
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

/// A policy that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// The drift factor is zero or above [`Policy::MOST_DRIFT_PPM`].
    Drift {
        /// The value given.
        ppm: u32,
    },
    /// The limit for one master's answer is below 1 ms or above 60 s.
    MasterTimeout {
        /// The value given.
        timeout: Duration,
    },
    /// The longest ttl is below twice the master timeout or above a day.
    MaxTtl {
        /// The value given.
        max_ttl: Duration,
        /// The least that works with the master timeout.
        least: Duration,
    },
    /// The back-off range is empty, or starts below 1 ms.
    Backoff {
        /// The shortest pause given.
        floor: Duration,
        /// The longest pause given.
        cap: Duration,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drift { ppm } => {
                write!(
                    f,
                    "a drift factor of {ppm} ppm is out of range: choose 1 to {}",
                    Policy::MOST_DRIFT_PPM
                )
            }
            Self::MasterTimeout { timeout } => {
                write!(f, "a master timeout of {timeout:?} is out of range: choose 1 ms to 60 s")
            }
            Self::MaxTtl { max_ttl, least } => write!(
                f,
                "a longest ttl of {max_ttl:?} is out of range: choose {least:?} (twice the master timeout) to 24 h"
            ),
            Self::Backoff { floor, cap } => {
                write!(
                    f,
                    "a back-off from {floor:?} to {cap:?} is no range: start at 1 ms or more, end no earlier"
                )
            }
        }
    }
}

impl std::error::Error for PolicyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_rounded_up_and_never_below_two_milliseconds() {
        let policy = Policy::new();
        let drift = |ms| policy.drift(Duration::from_millis(ms)).as_millis();
        assert_eq!((drift(0), drift(1), drift(100), drift(101), drift(30_000)), (2, 3, 3, 4, 302));
    }

    #[test]
    fn a_pause_stays_in_its_range_whatever_the_dice() {
        let policy = Policy::new();
        for claim in [0, 1, 5, 31, u32::MAX] {
            for dice in [0, 1, u64::MAX / 2, u64::MAX] {
                let pause = policy.backoff(claim, dice);
                assert!(
                    pause >= Duration::from_micros(6250) && pause <= Duration::from_millis(500),
                    "{pause:?}"
                );
            }
        }
    }

    #[test]
    fn numbers_that_cannot_work_are_refused_by_name() {
        assert_eq!(Policy::new().check(), Ok(()));
        assert!(Policy::new().with_drift_ppm(0).check().is_err());
        assert!(Policy::new().with_drift_ppm(100_001).check().is_err());
        assert!(Policy::new().with_master_timeout(Duration::ZERO).check().is_err());
        assert!(Policy::new().with_max_ttl(Duration::from_millis(999)).check().is_err());
        assert!(Policy::new().with_max_ttl(Duration::MAX).check().is_err());
        assert!(Policy::new().with_backoff(Duration::ZERO, Duration::ZERO).check().is_err()); // case B81
        let inverted = Policy::new().with_backoff(Duration::from_secs(2), Duration::from_secs(1)).check();
        assert!(inverted.is_err_and(|error| error.to_string().contains("2s to 1s")));
    }
}
