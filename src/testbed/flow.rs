//! What happens on the way, and what passed.

use std::time::Duration;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Requests.
    ToMaster,
    /// Replies.
    ToClient,
}

/// What happens to the bytes that go one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flow {
    pub(super) delay: Duration,
    pub(super) jitter: Duration,
    pub(super) drop: bool,
    pub(super) hold: bool,
    pub(super) cut_after: Option<u64>,
}

impl Flow {
    /// Everything passes at once.
    #[must_use]
    pub const fn new() -> Self {
        Self { delay: Duration::ZERO, jitter: Duration::ZERO, drop: false, hold: false, cut_after: None }
    }

    /// Later by this time.
    #[must_use]
    pub const fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Later by up to this time, evenly spread; in order all the same.
    #[must_use]
    pub const fn jittered(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// Swallowed, and nobody is told. A connection that lost bytes is of no use again, since nothing can follow a gap: it is
    /// reset when this setting ends.
    #[must_use]
    pub const fn dropped(mut self) -> Self {
        self.drop = true;
        self
    }

    /// Not read. The sender's own buffers fill up; all of it arrives when this setting ends, as after a network
    /// partition that heals.
    #[must_use]
    pub const fn held(mut self) -> Self {
        self.hold = true;
        self
    }

    /// Both directions are closed, in good order, as soon as this many bytes went this way; counted for each connection
    /// from this setting on.
    #[must_use]
    pub const fn cut_after(mut self, bytes: u64) -> Self {
        self.cut_after = Some(bytes);
        self
    }
}

/// What went through a [`Proxy`](super::Proxy) so far. Bytes count when they are handed over, not when they are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Traffic {
    /// Connections accepted.
    pub connections: u64,
    /// Connections open at the moment.
    pub open: u64,
    /// Bytes of requests that passed.
    pub to_master: u64,
    /// Bytes of replies that passed.
    pub to_client: u64,
    /// Bytes of requests that were swallowed.
    pub lost_to_master: u64,
    /// Bytes of replies that were swallowed.
    pub lost_to_client: u64,
}
