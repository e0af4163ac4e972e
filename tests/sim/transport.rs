//! The client's end of its connections.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use quorlock::protocol::fanout::Link;
use quorlock::protocol::quorum::{MasterId, MasterSet, Quorum};
use quorlock::protocol::votes::{Fault, Vote};
use quorlock::transport::{Ask, LinkWatcher, Pending, Refused, Transport};
use tokio::sync::Notify;

use crate::sights::Sight;
use crate::time::MachineClock;
use crate::wire::{Gate, Waiting, broken};
use crate::world::{Event, Note, World, locked};

pub(crate) struct Wires {
    pub(crate) client: usize,
    pub(crate) names: Vec<String>,
    pub(crate) world: Arc<Mutex<World>>,
    pub(crate) clock: Arc<MachineClock>,
    /// Something was sent: what happens next may happen sooner than was thought.
    pub(crate) sent: Arc<Notify>,
    pub(crate) closed: AtomicBool,
}

impl std::fmt::Debug for Wires {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wires").field("client", &self.client).finish_non_exhaustive()
    }
}

/// How an ask ends.
pub(crate) enum Reply {
    By(Vote, Link),
    Unsent(Fault),
}

/// Answers, and has it in the book.
pub(crate) fn tell(world: &Mutex<World>, clock: &MachineClock, waiting: Waiting, reply: Reply) {
    let Waiting { ask, number, took } = waiting;
    let (dispatch, holder) = (*ask.dispatch(), ask.holder());
    let vote = match &reply {
        Reply::By(vote, _) => vote.clone(),
        Reply::Unsent(fault) => Vote::Failed(fault.clone()),
    };
    let before = locked(world).book.on_answer(&holder, &dispatch, number, &vote, clock.real());
    match reply {
        Reply::By(vote, link) => ask.answer_numbered(vote, took, link),
        Reply::Unsent(fault) => ask.withdraw(fault),
    }
    let world = &mut *locked(world);
    world.book.after_answer(&holder, &dispatch, &vote, before, clock.real(), &mut world.sights);
}

/// Sends what waits, as far as may be.
pub(crate) fn drain(world: &Mutex<World>, clock: &MachineClock, client: usize, master: usize) {
    loop {
        let waiting = {
            let mut world = locked(world);
            let window = world.plan.window;
            world.wires[client][master].take(window)
        };
        let Some(waiting) = waiting else { return };
        if waiting.ask.is_wanted() {
            locked(world).put_on_wire(client, master, waiting, clock.real());
        } else {
            locked(world).saw(Sight::Withdrawn);
            tell(world, clock, waiting, Reply::Unsent(Fault::Withdrawn));
        }
    }
}

impl Transport for Wires {
    fn masters(&self) -> &[String] {
        &self.names
    }

    fn send(&self, ask: Ask) -> Result<(), Refused> {
        let now = self.clock.real();
        let world = &mut *locked(&self.world);
        let (dispatch, holder) = (*ask.dispatch(), ask.holder());
        let number = world.book.on_sent(self.client, ask.keys(), &holder, &dispatch, now);
        let room = world.calm || world.plan.overload == 0 || !world.dice.one_in(world.plan.overload);
        let wire = &mut world.wires[self.client][dispatch.to.index()];
        let fault = if self.closed.load(Ordering::Relaxed) {
            Some(Fault::Closed)
        } else {
            wire.refuses(&dispatch).or_else(|| (!room).then_some(Fault::Overloaded))
        };
        let Some(fault) = fault else {
            wire.put(Waiting { ask, number, took: None });
            return Ok(());
        };
        if matches!(wire.gate, Gate::DeletesOnly) {
            world.sights.saw(Sight::InQuarantine);
        }
        world.sights.saw(Sight::Refused);
        world.book.on_refused(&holder, &dispatch);
        let (client, short) = (self.client, world.short(&holder));
        world.trace.tell(now, || {
            format!("c{client} cannot send {:?} of {short} to {}: {fault}", dispatch.act, dispatch.to)
        });
        Err(Refused::new(ask, fault))
    }

    fn abstains(&self, master: MasterId) -> Option<Fault> {
        match &locked(&self.world).wires[self.client][master.index()].gate {
            Gate::Open => None,
            Gate::DeletesOnly => Some(Fault::Quarantined(Duration::ZERO)),
            Gate::Shut(fault) => Some(fault.clone()),
        }
    }

    fn tells(&self, master: MasterId) -> bool {
        let world = locked(&self.world);
        world.plan.tells && matches!(world.wires[self.client][master.index()].gate, Gate::Open)
    }

    /// One pass over the counters, as the real transport makes it of masters that vote.
    fn count(&self, quorum: Quorum, _doubted: MasterSet) -> Option<Pending<'_>> {
        locked(&self.world).recover_counters(self.client, quorum);
        None
    }

    fn flush(&self, masters: MasterSet) {
        for master in masters.map(MasterId::index) {
            let later = {
                let mut world = locked(&self.world);
                let timeout = world.plan.timeout;
                let waits = !world.calm && world.dice.one_in(10);
                waits.then(|| world.dice.below(timeout + timeout / 8))
            };
            match later {
                None => drain(&self.world, &self.clock, self.client, master),
                Some(later) => {
                    let event = Event::Note(self.client, Note::Drain(master));
                    locked(&self.world).at(self.clock.real() + later, event);
                }
            }
        }
        // The thread may lose its turn right after the commands went out.
        if let Some(millis) = locked(&self.world).stall() {
            self.clock.stall(millis);
        }
        self.sent.notify_one();
    }

    fn attach(&self, watcher: Weak<dyn LinkWatcher>) {
        locked(&self.world).watchers[self.client] = Some(watcher);
    }

    /// What is on its way arrives all the same.
    fn close(&self) {
        if self.closed.swap(true, Ordering::Relaxed) {
            return;
        }
        let (mut unsent, mut unanswered) = (Vec::new(), Vec::new());
        {
            let world = &mut *locked(&self.world);
            world.watchers[self.client] = None;
            for wire in &mut world.wires[self.client] {
                unsent.append(&mut wire.shut(Fault::Closed));
                for id in std::mem::take(&mut wire.under_way) {
                    if let Some(call) = world.calls.get_mut(&id)
                        && let Some(ask) = call.ask.take()
                    {
                        unanswered.push((Waiting { ask, number: call.number, took: call.took }, call.link));
                    }
                }
            }
        }
        for (waiting, link) in unanswered {
            tell(&self.world, &self.clock, waiting, Reply::By(Vote::Unknown(broken()), link));
        }
        for waiting in unsent {
            tell(&self.world, &self.clock, waiting, Reply::Unsent(Fault::Closed));
        }
    }
}

impl Drop for Wires {
    fn drop(&mut self) {
        self.close();
    }
}
