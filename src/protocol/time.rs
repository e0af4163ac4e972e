//! A moment on the client's own clock.

use std::time::Duration;

/// Time since an origin that only the clock knows, in nanoseconds.
///
/// Arithmetic saturates: a deadline that cannot be represented is the far future, and a difference that would be
/// negative is zero. Neither can make a lease look longer than it is, since a ttl is bounded (see
/// [`Policy`](super::policy::Policy)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// A moment no clock reaches.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The moment `by` later.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(nanos(by)))
    }

    /// The moment `by` earlier, or the origin.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(by)))
    }

    /// How long after `earlier` this moment is; zero if it is not.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let moment = Moment::from_nanos(5);
        assert_eq!(moment.minus(Duration::from_nanos(6)), Moment::from_nanos(0));
        assert_eq!(moment.plus(Duration::MAX), Moment::NEVER);
        assert_eq!(moment.since(Moment::from_nanos(9)), Duration::ZERO);
        assert_eq!(Moment::from_nanos(9).since(moment), Duration::from_nanos(4));
    }
}
