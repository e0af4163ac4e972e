//! SIGINT and SIGTERM, while something must be cleaned up.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Exit, Failure};

/// From here on these signals end nothing by themselves.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn catch() -> Result<Self, Failure> {
        let catch =
            |kind| signal(kind).map_err(|error| Failure::other(format!("cannot catch signals: {error}")));
        Ok(Self { interrupt: catch(SignalKind::interrupt())?, terminate: catch(SignalKind::terminate())? })
    }

    /// What `work` comes to, or which signal came before. Then `work` is dropped.
    pub(crate) async fn or<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Exit> {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Err(Exit::Signal(2)),
            _ = self.terminate.recv() => Err(Exit::Signal(15)),
            done = work => Ok(done),
        }
    }
}
