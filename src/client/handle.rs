//! What keeps a client alive.

use std::sync::Arc;

use super::shared::Shared;

/// Counts clones and guards: the last one ends the client's tasks.
#[derive(Debug)]
pub(crate) struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Arc<Self> {
        Arc::new(Self { shared })
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.keeper.orphan();
    }
}
