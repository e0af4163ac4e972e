//! What a master tells of keys that somebody was refused on: client tracking on the connection that votes.
//!
//! The master remembers each key that this connection read, once: when it changes or expires, that is told, and
//! forgotten. So a refusal that reads the key asks to be told in the same step, and nothing can happen in between.
//!
//! What this connection changes itself is not told (`NOLOOP`), so that a release costs no message that nobody needs.
//! It ends the tracking of the key all the same, but nobody misses that: what this connection changes is a lock of this
//! client, behind which the client's own waiters stand and of whose end they are told without the master. So a renewal
//! by this client wakes nobody either.

use ::fred::clients::Client;
use ::fred::interfaces::TrackingInterface;
use ::fred::types::client::Invalidation;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::classify;

/// What a connection was told of changes.
#[derive(Debug)]
pub(super) struct Changes(Option<Receiver<Invalidation>>);

/// What changed.
#[derive(Debug)]
pub(super) enum Change {
    Of(Invalidation),
    /// More than could be kept in mind.
    OfAnything,
}

impl Changes {
    pub(super) const fn untold() -> Self {
        Self(None)
    }

    /// Asks to be told from now on; why not, if the master does not do it.
    pub(super) async fn on(client: &Client) -> Result<Self, String> {
        let told = client.invalidation_rx();
        match client.start_tracking(Vec::<String>::new(), false, false, false, true).await {
            Ok(()) => Ok(Self(Some(told))),
            Err(error) => Err(classify::reason(&error)),
        }
    }

    /// Whether anything will be told.
    pub(super) const fn is_told(&self) -> bool {
        self.0.is_some()
    }

    /// The next change. Never, if nothing is told.
    pub(super) async fn next(&mut self) -> Change {
        let Some(told) = &mut self.0 else { return std::future::pending().await };
        match told.recv().await {
            Ok(change) => Change::Of(change),
            Err(RecvError::Lagged(_)) => Change::OfAnything,
            Err(RecvError::Closed) => {
                self.0 = None;
                std::future::pending().await
            }
        }
    }
}
