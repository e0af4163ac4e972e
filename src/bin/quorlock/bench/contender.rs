//! What is measured: a lock, given and taken back.

use std::time::Duration;

/// Long enough that nothing expires, short enough that nothing piles up.
pub(crate) const TTL: Duration = Duration::from_secs(10);

/// As [`quorlock::Policy`] has it.
pub(crate) const MASTER_TIMEOUT: Duration = Duration::from_millis(500);

/// A lock, given and taken back.
pub(crate) trait Contender: Send + Sync + 'static {
    type Lock: Send;

    fn acquire(&self, key: &str) -> impl Future<Output = Result<Self::Lock, String>> + Send;

    /// Whether the lock is still held, as far as this one knows.
    fn holds(&self, _: &Self::Lock) -> bool {
        true
    }

    fn release(&self, lock: Self::Lock) -> impl Future<Output = Result<(), String>> + Send;
}

/// One whose locks can be renewed by hand.
pub(crate) trait Renewing: Contender {
    fn renew(&self, lock: &mut Self::Lock) -> impl Future<Output = Result<(), String>> + Send;
}
