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
use crate::protocol::quorum::MasterId;
use crate::transport::LinkWatcher;

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

impl Change {
    pub(super) fn tell(&self, master: MasterId, watcher: &dyn LinkWatcher) {
        match self {
            Self::Of(changed) => {
                changed.keys.iter().for_each(|key| watcher.on_changed(master, Some(key.as_bytes())));
            }
            Self::OfAnything => watcher.on_changed(master, None),
        }
    }
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use ::fred::types::config::Server;
    use tokio::sync::broadcast;
    use tokio::time::timeout;

    use super::*;

    /// What it was told of the second master.
    #[derive(Default)]
    struct Told(Mutex<Vec<Option<String>>>);

    impl LinkWatcher for Told {
        fn on_link(&self, _: MasterId, _: bool) {}

        fn on_changed(&self, master: MasterId, resource: Option<&[u8]>) {
            assert_eq!(master.index(), 1);
            let resource = resource.map(|key| String::from_utf8_lossy(key).into_owned());
            self.0.lock().expect("no panic").push(resource);
        }
    }

    #[tokio::test]
    async fn what_could_not_be_kept_in_mind_is_told_as_any_change() {
        let (tell, told) = broadcast::channel(2);
        let mut changes = Changes(Some(told));
        for key in ["a", "b", "c"] {
            let change = Invalidation { keys: vec![key.into()], server: Server::new("m", 1) };
            tell.send(change).expect("somebody listens");
        }
        let (watcher, second) = (Told::default(), MasterId::new(1).expect("in range"));
        for _ in 0..3 {
            changes.next().await.tell(second, &watcher);
        }
        let heard = watcher.0.into_inner().expect("no panic");
        assert_eq!(heard, [None, Some("b".into()), Some("c".into())]);
        drop(tell);
        let moment = std::time::Duration::from_millis(1);
        assert!(timeout(moment, changes.next()).await.is_err() && !changes.is_told());
    }
}
