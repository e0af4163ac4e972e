//! What a master tells of keys that somebody was refused on: client tracking on the connection that votes.
//!
//! The master remembers a key that this connection read, once: when it changes or expires, that is told, and forgotten.
//! So a refusal that reads the key asks to be told in the same step, and nothing can happen in between.
//!
//! Only what is asked for is remembered (`OPTIN`): tracking every key would have the scripts for many keys hold a
//! master four times as long, whether anybody waits or not. The price is one more command for a claim that watches.
//! What this connection changes itself is told as well (no `NOLOOP`). A renewal by this client wakes nobody all the
//! same, since its own waiters stand behind its own locks and do not listen; but a key that it left behind and now
//! deletes may be the one that it waits for.

use ::fred::clients::Client;
use ::fred::interfaces::{ClientInterface, TrackingInterface};
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

    /// Asks to be told of what is asked for from now on; why not, if the master does not do it.
    pub(super) async fn on(client: &Client) -> Result<Self, String> {
        let told = client.invalidation_rx();
        let start = client.start_tracking(Vec::<String>::new(), false, true, false, false);
        // The second tells whether the user may ask at all.
        match tokio::join!(start, client.client_caching::<()>(true)) {
            (Ok(()), Ok(())) => Ok(Self(Some(told))),
            (Err(error), _) | (_, Err(error)) => Err(classify::reason(&error)),
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
