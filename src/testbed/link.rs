//! What a proxy and its connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::testbed::flow::{Direction, Flow, Traffic};

/// The settings, and what is counted.
#[derive(Clone)]
pub(super) struct Link(Arc<Shared>);

struct Shared {
    settings: watch::Sender<Settings>,
    counters: Counters,
}

#[derive(Default)]
pub(super) struct Settings {
    /// By direction; each with the number of its change.
    flows: [(Flow, u64); 2],
    pub(super) refuse: bool,
    pub(super) resets: u64,
    pub(super) target: String,
}

#[derive(Default)]
struct Counters {
    connections: AtomicU64,
    open: AtomicU64,
    passed: [AtomicU64; 2],
    lost: [AtomicU64; 2],
}

impl Link {
    pub(super) fn to(target: String) -> Self {
        let settings = watch::channel(Settings { target, ..Settings::default() }).0;
        Self(Arc::new(Shared { settings, counters: Counters::default() }))
    }

    pub(super) fn target(&self) -> String {
        self.0.settings.borrow().target.clone()
    }

    pub(super) fn set(&self, direction: Direction, flow: Flow) {
        self.change(|settings| {
            let (now, number) = &mut settings.flows[direction as usize];
            *now = flow;
            *number += 1;
        });
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Settings)) {
        self.0.settings.send_modify(change);
    }

    pub(super) fn settings(&self) -> watch::Receiver<Settings> {
        self.0.settings.subscribe()
    }

    /// The setting of one direction and its number.
    pub(super) fn flow(&self, direction: Direction) -> (Flow, u64) {
        self.0.settings.borrow().flows[direction as usize]
    }

    pub(super) fn count_passed(&self, direction: Direction, bytes: usize) {
        self.0.counters.passed[direction as usize].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn count_lost(&self, direction: Direction, bytes: usize) {
        self.0.counters.lost[direction as usize].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn traffic(&self) -> Traffic {
        let counters = &self.0.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic {
            connections: read(&counters.connections),
            open: read(&counters.open),
            to_master: read(&counters.passed[0]),
            to_client: read(&counters.passed[1]),
            lost_to_master: read(&counters.lost[0]),
            lost_to_client: read(&counters.lost[1]),
        }
    }

    /// Counts a connection and returns its number, from 0 on.
    pub(super) fn count_connection(&self) -> u64 {
        self.0.counters.connections.fetch_add(1, Ordering::Relaxed)
    }
}

/// Counts a connection for as long as it lives.
pub(super) struct Open<'a>(&'a AtomicU64);

impl<'a> Open<'a> {
    pub(super) fn new(link: &'a Link) -> Self {
        let open = &link.0.counters.open;
        open.fetch_add(1, Ordering::Relaxed);
        Self(open)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
