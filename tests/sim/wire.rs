//! The connection of one client to one master, as the real transport keeps it: one stream, in order, in both directions.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quorlock::protocol::fanout::{Dispatch, Link};
use quorlock::protocol::votes::{Fault, Vote};
use quorlock::transport::Ask;

use crate::time::US;

/// What the master takes at the moment, as far as the client knows.
#[derive(Clone, Debug)]
pub(crate) enum Gate {
    Shut(Fault),
    DeletesOnly,
    Open,
}

/// Something that waits to be sent.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) ask: Ask,
    pub(crate) number: u32,
    /// The fencing number that its keys took.
    pub(crate) took: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) link: u32,
    pub(crate) gate: Gate,
    pub(crate) urgent: VecDeque<Waiting>,
    pub(crate) plain: VecDeque<Waiting>,
    /// Calls without an answer.
    pub(crate) under_way: BTreeSet<u64>,
    /// The process it leads to, and the one it led to before.
    pub(crate) process: u32,
    pub(crate) route: Route,
    /// The stream's heads: nothing arrives before what was sent before it.
    pub(crate) last_arrival: u64,
    pub(crate) last_answer: u64,
    pub(crate) strikes: u32,
    pub(crate) last_strike: u64,
    pub(crate) failures: u32,
}

/// How long it takes, and until when.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Route {
    pub(crate) there: u64,
    pub(crate) back: u64,
    pub(crate) until: u64,
    pub(crate) there_blocked: u64,
    pub(crate) back_blocked: u64,
}

/// A command on its way.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) client: usize,
    pub(crate) master: usize,
    pub(crate) link: Link,
    pub(crate) process: u32,
    /// Until it is answered.
    pub(crate) ask: Option<Ask>,
    pub(crate) number: u32,
    pub(crate) took: Option<u64>,
    pub(crate) dispatch: Dispatch,
    pub(crate) keys: Vec<Bytes>,
    pub(crate) holder: Bytes,
    pub(crate) sent: u64,
    pub(crate) arrives: (u64, u64),
    pub(crate) times_out: (u64, u64),
    /// What the master said, and when the client will hear of it.
    pub(crate) answer: Option<((u64, u64), Vote)>,
}

impl Wire {
    pub(crate) fn new() -> Self {
        Self {
            link: 1,
            gate: Gate::Open,
            urgent: VecDeque::new(),
            plain: VecDeque::new(),
            under_way: BTreeSet::new(),
            process: 1,
            route: Route::default(),
            last_arrival: 0,
            last_answer: 0,
            strikes: 0,
            last_strike: 0,
            failures: 0,
        }
    }

    /// Why it takes no command that votes, or not this one.
    pub(crate) fn refuses(&self, dispatch: &Dispatch) -> Option<Fault> {
        match &self.gate {
            Gate::Open => None,
            Gate::DeletesOnly => dispatch.act.votes().then_some(Fault::Quarantined(Duration::ZERO)),
            Gate::Shut(fault) => Some(fault.clone()),
        }
    }

    pub(crate) fn put(&mut self, waiting: Waiting) {
        let queue = if waiting.ask.dispatch().urgent { &mut self.urgent } else { &mut self.plain };
        queue.push_back(waiting);
    }

    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.gate, Gate::Shut(_))
    }

    pub(crate) fn take(&mut self, window: usize) -> Option<Waiting> {
        if self.under_way.len() >= window || !self.is_open() {
            return None;
        }
        self.urgent.pop_front().or_else(|| self.plain.pop_front())
    }

    /// When what is sent back now arrives.
    pub(crate) fn comes_back(&mut self, now: u64, near: u64) -> u64 {
        let far = if now < self.route.until { self.route.back } else { near };
        self.last_answer = (now + far + US).max(self.last_answer + 1).max(self.route.back_blocked);
        self.last_answer
    }

    /// What is not let through any more.
    pub(crate) fn shut(&mut self, why: Fault) -> Vec<Waiting> {
        self.gate = Gate::Shut(why);
        self.urgent.drain(..).chain(self.plain.drain(..)).collect()
    }
}

pub(crate) fn broken() -> Fault {
    Fault::Broken(Arc::from("closed before the answer"))
}
