//! What waits to be sent to one master. Any thread may put in; one task takes out.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use tokio::time::Instant;

use super::call::Load;
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

    /// Moves as many asks as go in one call to `batch`, renewals first; those that are not wanted any more to `unwanted`.
    pub(super) fn take(&self, batch: &mut Vec<Ask>, unwanted: &mut Vec<Ask>) {
        let mut queue = self.queue();
        let mut load = Load::default();
        loop {
            let Queue { urgent, plain, .. } = &mut *queue;
            let from = if urgent.is_empty() { plain } else { urgent };
            if !from.front().is_some_and(|ask| load.takes(ask)) {
                break;
            }
            // Whether it is wanted is asked below, without the lock: the asker has a lock of its own.
            batch.extend(from.pop_front());
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::protocol::fanout::{Act, Dispatch};
    use crate::protocol::policy::Policy;
    use crate::protocol::quorum::MasterId;
    use crate::protocol::request::Ttl;
    use crate::protocol::time::Moment;
    use crate::protocol::votes::Reply;
    use crate::transport::{Asker, Resources, script};

    struct Someone(Resources, Bytes);

    impl Asker for Someone {
        fn resources(&self) -> &Resources {
            &self.0
        }

        fn holder(&self) -> &Bytes {
            &self.1
        }

        fn wants(&self, _: &Dispatch) -> bool {
            true
        }

        fn answered(self: Arc<Self>, _: &Dispatch, _: Reply) {}
    }

    /// An ask for resources of one letter each.
    fn ask(letters: &str, urgent: bool) -> Ask {
        ask_for(Resources::all(letters.chars().map(String::from)), urgent)
    }

    fn ask_for(resources: Resources, urgent: bool) -> Ask {
        let to = MasterId::new(0).expect("the first");
        let ttl = Ttl::new(Duration::from_secs(30), &Policy::new()).expect("the usual one");
        let act = if urgent { Act::Renew } else { Act::Release };
        let dispatch = Dispatch { to, act, round: 1, stamp: Moment::from_nanos(0), ttl, urgent, fence: None };
        Ask::new(dispatch, Arc::new(Someone(resources, Bytes::from("me"))))
    }

    fn calls(asks: &[(&str, bool)]) -> Vec<Vec<String>> {
        let outbox = Outbox::new();
        outbox.set_gate(Gate::Open);
        asks.iter().for_each(|(letters, urgent)| outbox.put(ask(letters, *urgent)).expect("open"));
        let mut calls = Vec::new();
        while outbox.is_filled() {
            let (mut batch, mut unwanted) = (Vec::new(), Vec::new());
            outbox.take(&mut batch, &mut unwanted);
            assert!(unwanted.is_empty());
            calls
                .push(batch.iter().map(|ask| String::from_utf8_lossy(&ask.keys().concat()).into()).collect());
        }
        calls
    }

    #[test]
    fn asks_of_a_kind_go_together_and_in_their_turn() {
        let plain = |letters| (letters, false);
        let asks = ["a", "b", "ac", "cd", "c", "a"].map(plain);
        assert_eq!(calls(&asks), [vec!["a", "b"], vec!["ac", "cd"], vec!["c", "a"]]);
        // Renewals go first, among themselves in order.
        let asks = [plain("a"), ("xy", true), plain("bc"), ("z", true), plain("d"), ("v", true)];
        assert_eq!(calls(&asks), [vec!["xy"], vec!["z", "v", "a"], vec!["bc"], vec!["d"]]);
    }

    #[test]
    fn no_call_has_more_keys_than_a_master_does_at_once() {
        let letters: String = ('!'..).take(script::MOST_KEYS).collect();
        let (half, more) = (&letters[..script::MOST_KEYS / 2], &letters[..script::MOST_KEYS / 2 + 1]);
        let sizes = |asks: &[&str]| -> Vec<usize> {
            let asks: Vec<_> = asks.iter().map(|letters| (*letters, false)).collect();
            calls(&asks).iter().map(Vec::len).collect()
        };
        assert_eq!(sizes(&[half, half, half, more, half, &letters, "ab"]), [2, 1, 1, 1, 1, 1]);
        assert_eq!(sizes(&["a"; 100]), [64, 36]);
    }

    #[test]
    fn no_call_has_more_bytes_than_a_master_does_at_once() {
        let sizes = |bytes: &[usize]| -> Vec<usize> {
            let outbox = Outbox::new();
            outbox.set_gate(Gate::Open);
            let long = |bytes: &usize| ask_for(Resources::all(["x".repeat(*bytes)]), true);
            bytes.iter().for_each(|bytes| outbox.put(long(bytes)).expect("open"));
            let mut sizes = Vec::new();
            while outbox.is_filled() {
                let mut batch = Vec::new();
                outbox.take(&mut batch, &mut Vec::new());
                sizes.push(batch.len());
            }
            sizes
        };
        // Each is signed with two bytes.
        let quarter = script::MOST_BYTES / 4 - 2;
        assert_eq!(sizes(&[quarter; 9]), [4, 4, 1]);
        assert_eq!(sizes(&[quarter, quarter, quarter, quarter + 1, quarter]), [3, 2]);
        assert_eq!(sizes(&[4 * script::MOST_BYTES; 2]), [1, 1], "alone it goes whatever it weighs");
        assert_eq!(sizes(&[script::MOST_BYTES / script::MOST_KEYS - 2; 70]), [64, 6]);
    }
}
