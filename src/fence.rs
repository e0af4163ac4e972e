//! The resource's side of fencing: who refuses what comes too late.
//!
//! A lock is a lease, and its holder may be stopped past its end without knowing it. So what must be safe even then
//! looks at the [`FencingToken`] that comes with each effect, and refuses one
//! smaller than the greatest it has seen. In a database that is one condition of the statement that writes:
//!
//! ```sql
//! UPDATE account SET balance = $2, token = $1 WHERE id = $3 AND token <= $1
//! ```
//!
//! No row changed means: refused. The look and the write must be one step there, as they are here.

use std::fmt;
use std::sync::{Mutex, PoisonError};

pub use crate::protocol::fencing::FencingToken;

/// A value in memory that only the latest holder may touch.
///
/// ```
/// use quorlock::fence::{FencingToken, Gate};
///
/// let stock = Gate::new(10);
/// let (earlier, later) = (FencingToken::new(33), FencingToken::new(34));
/// assert_eq!(stock.enter(earlier, |left| { *left -= 1; *left }), Ok(9));
/// assert_eq!(stock.enter(later, |left| { *left -= 1; *left }), Ok(8));
/// // The holder before wakes up.
/// let refused = stock.enter(earlier, |left| *left -= 1).unwrap_err();
/// assert_eq!((refused.token, refused.seen), (earlier, later));
/// ```
#[derive(Debug)]
pub struct Gate<T> {
    inside: Mutex<Inside<T>>,
}

#[derive(Debug)]
struct Inside<T> {
    seen: Option<FencingToken>,
    value: T,
}

/// Somebody with a greater token was there before: whoever came with this one holds the lock no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale {
    /// The token that was refused.
    pub token: FencingToken,
    /// The greatest one seen.
    pub seen: FencingToken,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { token, seen } = self;
        write!(f, "stale fencing token {token}: {seen} was here before, so the lock it belongs to is over")
    }
}

impl std::error::Error for Stale {}

impl<T> Gate<T> {
    /// Around `value`, which nobody has touched yet.
    pub const fn new(value: T) -> Self {
        Self { inside: Mutex::new(Inside { seen: None, value }) }
    }

    /// Around a `value` that was last touched with the token `seen`, as a store on disk may know it.
    pub const fn reopen(value: T, seen: FencingToken) -> Self {
        Self { inside: Mutex::new(Inside { seen: Some(seen), value }) }
    }

    /// Lets `work` at the value if no greater token was here; one holder may come as often as it likes. The look and
    /// the work are one step: nobody else is inside meanwhile.
    ///
    /// # Errors
    ///
    /// [`Stale`] with both numbers; `work` was not called.
    pub fn enter<R>(&self, token: FencingToken, work: impl FnOnce(&mut T) -> R) -> Result<R, Stale> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        match inside.seen {
            Some(seen) if token < seen => Err(Stale { token, seen }),
            _ => {
                inside.seen = Some(token);
                Ok(work(&mut inside.value))
            }
        }
    }

    /// The greatest token that was here.
    pub fn seen(&self) -> Option<FencingToken> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner).seen
    }

    /// The value, when nobody else can come any more.
    pub fn into_inner(self) -> T {
        self.inside.into_inner().unwrap_or_else(PoisonError::into_inner).value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_lets_the_latest_in_as_often_as_it_likes_and_nobody_before_it() {
        let gate = Gate::new(Vec::new());
        let enter = |number| gate.enter(FencingToken::new(number), |seen: &mut Vec<u64>| seen.push(number));
        assert_eq!([5, 5, 9, 9].map(enter), [Ok(()); 4]);
        let refused = enter(8).unwrap_err();
        assert_eq!((refused.token.as_u64(), refused.seen.as_u64()), (8, 9));
        assert!(refused.to_string().contains("8") && refused.to_string().contains("9"), "{refused}");
        assert_eq!((enter(10), gate.seen()), (Ok(()), Some(FencingToken::new(10))));
        assert_eq!(gate.into_inner(), [5, 5, 9, 9, 10]);
    }

    #[test]
    fn a_gate_that_was_closed_remembers_its_greatest_token() {
        let gate = Gate::reopen(0, FencingToken::new(7));
        assert!(gate.enter(FencingToken::new(6), |_| ()).is_err());
        assert!(gate.enter(FencingToken::new(7), |_| ()).is_ok());
    }

    #[test]
    fn work_that_panics_leaves_the_gate_as_strict_as_it_was() {
        let gate = Gate::new(());
        let panics = || gate.enter(FencingToken::new(7), |()| panic!("in the middle"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert!(gate.enter(FencingToken::new(6), |()| ()).is_err());
    }
}
