//! A small world: five masters as values, a network between them and each client, and one true clock.
//!
//! Within one connection order is kept. A connection may break: what was unanswered is answered as broken, and may
//! still be executed later, also after commands of the next connection (hazard H1).

use std::collections::VecDeque;

use super::master::Master;
use crate::protocol::attempt::{Attempt, Stage};
use crate::protocol::fanout::{Act, Dispatch, Link};
use crate::protocol::fencing::{self, Counters};
use crate::protocol::quorum::{MasterId, MasterSet, Quorum};
use crate::protocol::time::Moment;
use crate::protocol::votes::{Fault, Reply, Vote};

pub(super) const MASTERS: usize = 5;

/// A command between its client and a master.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) attempt: usize,
    pub(super) dispatch: Dispatch,
    pub(super) link: u32,
    pub(super) sent: u64,
    /// Whether the client got its answer already, if only "no answer in time".
    pub(super) answered: bool,
    pub(super) vote: Option<Vote>,
    pub(super) number: Option<u64>,
}

/// The connection of one client to one master, and what is left of its predecessors.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pub(super) up: bool,
    pub(super) link: u32,
    /// The generation of the master that this client last spoke to.
    pub(super) run: u32,
    /// In the order sent; those with a vote come first, since the master executes in order, too.
    pub(super) flights: VecDeque<Flight>,
    /// Commands of broken connections, each with the last moment at which it can still be executed: the kernel
    /// gives up on the old connection before the last sweep of the next one.
    pub(super) ghosts: Vec<(Flight, Option<u64>)>,
}

impl Default for Wire {
    fn default() -> Self {
        Self { up: true, link: 1, run: 0, flights: VecDeque::new(), ghosts: Vec::new() }
    }
}

/// One attempt and what was observed of it.
#[derive(Clone, Debug)]
pub(super) struct Actor {
    pub(super) client: usize,
    pub(super) machine: Attempt,
    pub(super) began: u64,
    pub(super) release_began: Option<u64>,
    pub(super) seen: Stage,
    pub(super) passed: bool,
    /// Where it sent a delete.
    pub(super) deleting: MasterSet,
}

impl Actor {
    pub(super) fn is_valid(&self, now: u64) -> bool {
        self.machine.deadline().is_some_and(|deadline| moment(now) < deadline)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub(super) now: u64,
    pub(super) masters: [Master; MASTERS],
    /// By client, then by master.
    pub(super) wires: Vec<[Wire; MASTERS]>,
    pub(super) actors: Vec<Actor>,
    /// How often an outbox is full: at every nth command; zero is never.
    pub(super) overload: u32,
    pub(super) handed_over: u32,
    pub(super) late_executions: u32,
    /// Deletes after the first.
    pub(super) sweeps: u32,
}

pub(super) const fn moment(nanos: u64) -> Moment {
    Moment::from_nanos(nanos)
}

impl World {
    /// Hands over what `attempt` wants done; without a connection nothing queues.
    pub(super) fn pump(&mut self, attempt: usize) {
        let actor = &mut self.actors[attempt];
        while let Some(dispatch) = actor.machine.next_dispatch() {
            if dispatch.act == Act::Release {
                self.sweeps += u32::from(actor.deleting.contains(dispatch.to));
                actor.deleting = actor.deleting.with(dispatch.to);
            }
            self.handed_over += 1;
            let wire = &mut self.wires[actor.client][dispatch.to.index()];
            if self.handed_over.is_multiple_of(self.overload) {
                actor.machine.on_reply(&dispatch, Reply::unsent(Fault::Overloaded), moment(self.now));
            } else if wire.up {
                let link = wire.link;
                wire.flights.push_back(Flight {
                    attempt,
                    dispatch,
                    link,
                    sent: self.now,
                    answered: false,
                    vote: None,
                    number: None,
                });
            } else {
                let reply = Reply::unsent(Fault::NotConnected("down".into()));
                actor.machine.on_reply(&dispatch, reply, moment(self.now));
            }
        }
    }

    /// The master executes the next command of a connection.
    pub(super) fn execute(&mut self, client: usize, master: usize) -> bool {
        let flights = &mut self.wires[client][master].flights;
        let Some(flight) = flights.iter_mut().find(|flight| flight.vote.is_none()) else { return false };
        let late = flight.answered && flight.dispatch.act == Act::Renew;
        let (vote, number) = self.masters[master].execute(flight.attempt, &flight.dispatch, late, self.now);
        (flight.vote, flight.number) = (Some(vote), number);
        true
    }

    /// The client hears the next answer of a connection.
    pub(super) fn hear(&mut self, client: usize, master: usize) -> bool {
        let flights = &mut self.wires[client][master].flights;
        if flights.front().is_none_or(|flight| flight.vote.is_none()) {
            return false;
        }
        let flight = flights.pop_front().unwrap();
        let vote = flight.vote.clone().unwrap();
        if !flight.answered {
            self.answer(&flight, vote);
        }
        true
    }

    /// The last command of a connection is not sent yet, and taken back if it lost its use.
    pub(super) fn withdraw(&mut self, client: usize, master: usize) {
        let flights = &mut self.wires[client][master].flights;
        let of_use =
            |flight: &Flight| self.actors[flight.attempt].machine.wants(&flight.dispatch, moment(self.now));
        if flights.back().is_some_and(|flight| flight.vote.is_none() && !flight.answered && !of_use(flight)) {
            let flight = flights.pop_back().unwrap();
            self.answer(&flight, Vote::Failed(Fault::Withdrawn));
        }
    }

    pub(super) fn answer(&mut self, flight: &Flight, vote: Vote) {
        let reply = Reply { vote, link: Some(Link(flight.link)), number: flight.number };
        self.actors[flight.attempt].machine.on_reply(&flight.dispatch, reply, moment(self.now));
        self.pump(flight.attempt);
    }

    /// A connection breaks; `lost(n)` tells whether its nth unexecuted command is lost for good.
    pub(super) fn cut(&mut self, client: usize, master: usize, mut lost: impl FnMut() -> bool) {
        let wire = &mut self.wires[client][master];
        wire.up = false;
        let flights: Vec<_> = wire.flights.drain(..).collect();
        for flight in &flights {
            if flight.vote.is_none() && !lost() {
                wire.ghosts.push((flight.clone(), None));
            }
        }
        for flight in flights.iter().filter(|flight| !flight.answered) {
            self.answer(flight, Vote::Unknown(Fault::Broken("cut".into())));
        }
    }

    pub(super) fn connect(&mut self, client: usize, master: usize, patience: u64) {
        let wire = &mut self.wires[client][master];
        wire.up = true;
        wire.link += 1;
        let restarted = wire.run != self.masters[master].run;
        wire.run = self.masters[master].run;
        for (_, limit) in &mut wire.ghosts {
            limit.get_or_insert(self.now + patience);
        }
        for attempt in 0..self.actors.len() {
            if self.actors[attempt].client == client {
                let id = MasterId::new(master).unwrap();
                self.actors[attempt].machine.on_link(id, restarted, moment(self.now));
                self.pump(attempt);
            }
        }
    }

    /// The process ends and starts again empty; what was on its way to the old one dies with it.
    pub(super) fn restart(&mut self, master: usize, quarantine: u64) {
        let run = self.masters[master].run + 1;
        let quarantine = self.now + quarantine;
        self.masters[master] = Master { key: None, run, quarantine, counter: 0, uncounted: true };
        for client in 0..self.wires.len() {
            self.wires[client][master].ghosts.clear();
            if self.wires[client][master].up {
                self.cut(client, master, || true);
            }
        }
    }

    /// A master that lost its counter and votes again takes the greatest of as few others as will do, the least of
    /// them. How many did so.
    pub(super) fn recover(&mut self, quorum: Quorum) -> u32 {
        let mut recovered = 0;
        for nth in 0..MASTERS {
            if !self.masters[nth].uncounted || self.now < self.masters[nth].quarantine {
                continue;
            }
            let others = self.masters.iter().filter(|master| !master.uncounted);
            let mut others: Vec<u64> = others.map(|master| master.counter).collect();
            others.sort_unstable();
            others.truncate(fencing::reads_to_recover(quorum));
            let others = others.into_iter().map(|counter| Counters::from([(0, counter)]));
            if let Some(counters) = fencing::recover(quorum, others) {
                let counter = counters.get(&0).copied().unwrap_or(0);
                let master = &mut self.masters[nth];
                (master.counter, master.uncounted) = (master.counter.max(counter), false);
                recovered += 1;
            }
        }
        recovered
    }

    /// A command of a broken connection arrives after all.
    pub(super) fn haunt(&mut self, client: usize, master: usize, nth: usize) {
        let (flight, limit) = self.wires[client][master].ghosts.remove(nth);
        if limit.is_none_or(|limit| self.now <= limit) {
            let (vote, _) = self.masters[master].execute(flight.attempt, &flight.dispatch, true, self.now);
            self.late_executions += u32::from(vote == Vote::Granted && flight.dispatch.act.creates());
        }
    }

    /// Gives up on commands older than `patience`, as the transport does.
    pub(super) fn time_out(&mut self, patience: u64) {
        for client in 0..self.wires.len() {
            for master in 0..MASTERS {
                for nth in 0..self.wires[client][master].flights.len() {
                    let flight = &mut self.wires[client][master].flights[nth];
                    if !flight.answered && self.now >= flight.sent + patience {
                        flight.answered = true;
                        let flight = flight.clone();
                        self.answer(&flight, Vote::Unknown(Fault::TimedOut));
                    }
                }
            }
        }
    }
}
