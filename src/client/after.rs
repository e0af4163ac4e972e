//! What is left to do once an attempt is unlocked: send off what was handed over, and tell those who wait.

use std::sync::Arc;
#[cfg(feature = "mutants")]
use std::sync::atomic::Ordering;

use tokio::task::yield_now;

use super::stake::{After, Stake};
use crate::protocol::attempt::Attempt;
use crate::protocol::quorum::MasterSet;
use crate::protocol::time::Moment;

impl Stake {
    /// Hands the attempt to the keeper, after a last input.
    pub(crate) fn keep(self: &Arc<Self>, input: impl FnOnce(&mut Attempt, Moment)) {
        let after = self.hand_over(input);
        self.finish(after);
    }

    /// Gives the lock back. Where a contender of this client waits for it, its claim goes along with the release, so
    /// that each master has one call to read instead of two.
    pub(crate) async fn give_back(self: &Arc<Self>) {
        let after = self.hand_over(Attempt::release);
        let unsent = Unsent(self, after.sent);
        if self.tell(after) {
            // Its turn comes before our next one, and it sends off both.
            yield_now().await;
        }
        drop(unsent);
    }

    /// Sends first: whoever is told may take its time.
    pub(super) fn finish(&self, after: After) {
        self.flush(after.sent);
        self.tell(after);
    }

    fn flush(&self, sent: MasterSet) {
        if !sent.is_empty() {
            self.shared.transport.flush(sent);
            #[cfg(feature = "mutants")]
            self.sent.store(self.shared.clock.now().as_nanos(), Ordering::Release);
        }
    }

    /// Whether a contender of this client was told that the lock is over.
    pub(super) fn tell(&self, after: After) -> bool {
        if after.is_news {
            self.changed.notify_waiters();
        }
        if !after.is_over {
            return false;
        }
        gauge!(decrement 1.0, "quorlock_held");
        self.shared.queue.let_go(&self.resources, self.shared.quorum.everyone())
    }
}

/// What was handed over and not flushed yet. Dropped, it is.
struct Unsent<'a>(&'a Stake, MasterSet);

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        self.0.flush(self.1);
    }
}
