//! What waits to be sent to one master. Any thread may put in; one task takes out.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use tokio::time::Instant;

use crate::protocol::votes::Fault;
use crate::transport::{Ask, Refused};

/// How much may wait. Deletes may fill twice as much, so that claims cannot keep them out.
const CAPACITY: usize = 16_384;

/// What the master takes at the moment.
#[derive(Clone, Debug)]
pub(super) enum Gate {
    /// Nothing: there is no connection. Nothing queues for a later one (case B25).
    Shut(Fault),
    /// Deletes: the master is in quarantine until then, or was never asked to vote.
    DeletesOnly(Option<Instant>),
    /// Everything.
    Open,
}

impl Gate {
    fn fault(&self) -> Option<Fault> {
        match self {
            Self::Shut(fault) => Some(fault.clone()),
            Self::DeletesOnly(until) => Some(Fault::Quarantined(
                until.map(|until| until.saturating_duration_since(Instant::now())).unwrap_or_default(),
            )),
            Self::Open => None,
        }
    }

    fn takes(&self, ask: &Ask) -> bool {
        match self {
            Self::Shut(_) => false,
            Self::DeletesOnly(_) => !ask.dispatch().act.votes(),
            Self::Open => true,
        }
    }
}

#[derive(Debug)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    drain: AtomicWaker,
}

#[derive(Debug)]
struct Queue {
    gate: Gate,
    urgent: VecDeque<Ask>,
    plain: VecDeque<Ask>,
}

impl Outbox {
    pub(super) fn new() -> Self {
        let gate = Gate::Shut(Fault::NotConnected("not connected yet".into()));
        let queue = Queue { gate, urgent: VecDeque::new(), plain: VecDeque::new() };
        Self { queue: Mutex::new(queue), drain: AtomicWaker::new() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why it takes no votes.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.queue().gate.fault()
    }

    /// Puts an ask in. Nothing is sent before somebody flushes.
    pub(super) fn put(&self, ask: Ask) -> Result<(), Refused> {
        let mut queue = self.queue();
        if !queue.gate.takes(&ask) {
            let fault = queue.gate.fault().unwrap_or(Fault::Closed);
            return Err(Refused::new(ask, fault));
        }
        let limit = if ask.dispatch().act.votes() { CAPACITY } else { 2 * CAPACITY };
        if queue.urgent.len() + queue.plain.len() >= limit {
            return Err(Refused::new(ask, Fault::Overloaded));
        }
        if ask.dispatch().urgent {
            queue.urgent.push_back(ask);
        } else {
            queue.plain.push_back(ask);
        }
        Ok(())
    }

    /// Moves up to `most` asks that are still wanted to `batch`, renewals first; those taken back to `unwanted`.
    pub(super) fn take(&self, most: usize, batch: &mut Vec<Ask>, unwanted: &mut Vec<Ask>) {
        let mut queue = self.queue();
        while batch.len() < most {
            let Some(ask) = queue.urgent.pop_front().or_else(|| queue.plain.pop_front()) else { break };
            // Whether it is wanted is asked below, without the lock: the asker has a lock of its own.
            batch.push(ask);
        }
        drop(queue);
        if !batch.iter().all(Ask::is_wanted) {
            for ask in std::mem::take(batch) {
                if ask.is_wanted() { batch.push(ask) } else { unwanted.push(ask) }
            }
        }
    }

    /// Wakes the task that drains.
    pub(super) fn wake(&self) {
        self.drain.wake();
    }

    pub(super) fn is_filled(&self) -> bool {
        let queue = self.queue();
        !queue.urgent.is_empty() || !queue.plain.is_empty()
    }

    /// Ready when something waits; registers the one task that drains.
    pub(super) fn poll_filled(&self, cx: &Context<'_>) -> Poll<()> {
        if self.is_filled() {
            return Poll::Ready(());
        }
        self.drain.register(cx.waker());
        if self.is_filled() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Takes another gate; what the new one does not let through is taken back.
    pub(super) fn set_gate(&self, gate: Gate) {
        let mut unsent = Vec::new();
        {
            let mut queue = self.queue();
            queue.gate = gate;
            let Queue { gate, urgent, plain } = &mut *queue;
            for waiting in [urgent, plain] {
                for ask in std::mem::take(waiting) {
                    if gate.takes(&ask) { waiting.push_back(ask) } else { unsent.push(ask) }
                }
            }
        }
        if unsent.is_empty() {
            return;
        }
        let fault = self.queue().gate.fault().unwrap_or(Fault::Withdrawn);
        for ask in unsent {
            ask.withdraw(fault.clone());
        }
    }
}
