//! A world: attempts of the shipped protocol, masters as values, connections between them, and one clock.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use quorlock::protocol::attempt::{Attempt, Stage};
use quorlock::protocol::fanout::{Act, Dispatch, Link};
use quorlock::protocol::fencing::FencingToken;
use quorlock::protocol::news::News;
use quorlock::protocol::quorum::MasterId;
use quorlock::protocol::time::Moment;
use quorlock::protocol::verdict::Verdict;
use quorlock::protocol::votes::{Fault, Reply, Vote};

use super::master::Master;
use super::mixer::Mixer;
use super::row::{BEGINNING, Habit, MASTER_TIMEOUT, REACH, Row};

pub(crate) const MOST: usize = 5;

/// A command between an attempt and a master.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) dispatch: Dispatch,
    /// What the master said, not heard yet, and the number that the key took.
    pub(crate) vote: Option<Vote>,
    pub(crate) number: Option<u64>,
    /// Whether the attempt has its answer already, if only that none came.
    pub(crate) given_up: bool,
    /// Whether a delete in two steps has done the first.
    pub(crate) looked: bool,
}

/// The connection of one attempt to one master, and what is left of those before it.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) up: bool,
    pub(crate) link: u32,
    /// The process of the master that it leads to, or led to.
    pub(crate) run: u8,
    /// Whether it goes on over a restart, admitted once and for all.
    pub(crate) trusted: bool,
    /// Whether a delete was lost, or found no connection: then it is repeated after a second, if need be.
    pub(crate) excused: bool,
    /// In the order sent.
    pub(crate) flights: VecDeque<Flight>,
    /// Commands of broken connections, each with the moment from which it cannot be executed any more.
    pub(crate) ghosts: Vec<(Flight, Option<u64>)>,
}

/// One attempt, and its connections: every attempt has its own, so that nothing is in order between two.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) machine: Attempt,
    pub(crate) wires: [Wire; MOST],
    /// Whether it was ever valid.
    pub(crate) held: bool,
    /// Whether another was valid since it was.
    pub(crate) eclipsed: bool,
    /// One more than the greatest token of those that had won when it began.
    pub(crate) floor: u64,
    /// Whether its deletes are not sent.
    pub(crate) mute: bool,
    /// Its clock is not read yet, although its commands are under way.
    pub(crate) clockless: bool,
}

/// What may still go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    pub(crate) extensions: u8,
    pub(crate) crashes: u8,
    pub(crate) restarts: u8,
    pub(crate) forgets: u8,
    pub(crate) breaks: u8,
    pub(crate) silences: u8,
    pub(crate) repeats: u8,
    pub(crate) bumps: u8,
    pub(crate) replays: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) masters: [Master; MOST],
    pub(crate) lives: Vec<Rc<Life>>,
    pub(crate) budget: Budget,
}

impl Life {
    pub(crate) fn is_valid(&self, now: u64) -> bool {
        !self.clockless && self.machine.deadline().is_some_and(|deadline| Moment::from_nanos(now) < deadline)
    }

    /// Its token, if it has won.
    pub(crate) fn token(&self) -> Option<u64> {
        let won = self.machine.verdict() == Some(Verdict::Won);
        self.machine.token().filter(|_| won).map(FencingToken::as_u64)
    }

    pub(crate) const fn may_hold(&self) -> bool {
        matches!(self.machine.stage(), Stage::Claiming | Stage::Held)
    }

    pub(crate) const fn is_over(&self) -> bool {
        !self.may_hold()
    }

    /// Hands over what the attempt wants done. Without a connection nothing queues.
    pub(crate) fn pump(&mut self, now: u64) -> News {
        while let Some(dispatch) = self.machine.next_dispatch() {
            let wire = &mut self.wires[dispatch.to.index()];
            if self.mute && dispatch.act == Act::Release {
                continue;
            }
            if wire.up {
                wire.flights.push_back(Flight {
                    dispatch,
                    vote: None,
                    number: None,
                    given_up: false,
                    looked: false,
                });
            } else {
                wire.excused |= dispatch.act == Act::Release;
                let reply = Reply::unsent(Fault::NotConnected("down".into()));
                self.machine.on_reply(&dispatch, reply, Moment::from_nanos(now));
            }
        }
        self.machine.take_news()
    }

    /// The attempt gets an answer by the connection `link`.
    pub(crate) fn answer(
        &mut self,
        dispatch: &Dispatch,
        (vote, number): (Vote, Option<u64>),
        link: u32,
        now: u64,
    ) -> News {
        let reply = Reply { vote, link: Some(Link(link)), number };
        self.machine.on_reply(dispatch, reply, Moment::from_nanos(now));
        self.pump(now)
    }
}

impl World {
    pub(crate) fn new(row: &Row) -> Self {
        let repeats = u8::from(row.has(Habit::SendsAgain));
        let Row { extensions, crashes, restarts, forgets, breaks, silences, bumps, replays, .. } = *row;
        let budget =
            Budget { extensions, crashes, restarts, forgets, breaks, silences, repeats, bumps, replays };
        let masters = row.counters.map(|counter| Master { counter, ..Master::default() });
        Self { now: BEGINNING, masters, lives: Vec::new(), budget }
    }

    pub(crate) fn start(&mut self, row: &Row) {
        let now = Moment::from_nanos(self.now);
        let machine = Attempt::claim(row.quorum(), row.ttl(row.ttl), MASTER_TIMEOUT, now);
        let machine = if row.fenced { machine.fenced(row.proposals[self.lives.len()]) } else { machine };
        let floor = self.tokens().map(|token| token + 1).max().unwrap_or(0);
        let wire = |run| Wire {
            up: true,
            link: 1,
            run,
            trusted: false,
            excused: false,
            flights: VecDeque::new(),
            ghosts: Vec::new(),
        };
        let wires = self.masters.map(|master| wire(master.run));
        let clockless = row.has(Habit::ReadsTheClockLate);
        let mut life =
            Life { machine, wires, held: false, eclipsed: false, floor, mute: row.timeless, clockless };
        life.pump(self.now);
        self.lives.push(Rc::new(life));
    }

    /// The tokens of all that have won.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = u64> {
        self.lives.iter().filter_map(|life| life.token())
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment::from_nanos(self.now)
    }

    /// The value that signs the keys of an attempt.
    pub(crate) fn holder(row: &Row, life: usize) -> u8 {
        if row.has(Habit::SignsTwiceAlike) && life == 1 { 0 } else { life as u8 }
    }

    /// One number for one way of going on: whatever the clock shows, and whatever the masters are called.
    pub(crate) fn likeness(&self, row: &Row) -> u128 {
        let each = self.likeness_of_each(row);
        let mut mixer = Mixer::default();
        self.budget.hash(&mut mixer);
        for life in &self.lives {
            mixer
                .write_u8(u8::from(life.held) | u8::from(life.eclipsed) << 1 | u8::from(life.clockless) << 2);
            if row.fenced {
                mixer.write_u64(life.floor);
            }
            life.machine.feed(self.moment(), REACH, &mut mixer);
        }
        let mut sorted = each;
        sorted[..row.masters].sort_unstable();
        sorted[..row.masters].iter().for_each(|likeness| mixer.write_u128(*likeness));
        mixer.whole()
    }

    pub(crate) fn likeness_of_each(&self, row: &Row) -> [u128; MOST] {
        std::array::from_fn(|nth| if nth < row.masters { self.likeness_of(row, nth) } else { 0 })
    }

    fn likeness_of(&self, row: &Row, nth: usize) -> u128 {
        let mut mixer = Mixer::default();
        let master = &self.masters[nth];
        let id = MasterId::new(nth).expect("few masters");
        let key =
            master.key.map(|key| (key.holder, key.prolonged, key.late, key.expires - self.now, key.number));
        if row.fenced {
            (master.counter, master.uncounted, master.told, master.begun).hash(&mut mixer);
        }
        (key, master.quarantine.saturating_sub(self.now)).hash(&mut mixer);
        for life in &self.lives {
            life.machine.feed_seat(id, self.moment(), REACH, &mut mixer);
            let wire = &life.wires[nth];
            (wire.up, wire.link, wire.run == master.run, wire.trusted, wire.excused, wire.flights.len())
                .hash(&mut mixer);
            wire.flights.iter().for_each(|flight| self.feed_flight(flight, &mut mixer));
            for (ghost, limit) in &wire.ghosts {
                limit.map(|limit| limit - self.now).hash(&mut mixer);
                self.feed_flight(ghost, &mut mixer);
            }
        }
        mixer.whole()
    }

    fn feed_flight(&self, flight: &Flight, mixer: &mut Mixer) {
        let Dispatch { act, round, stamp, ttl, fence, .. } = flight.dispatch;
        let age = self.moment().since(stamp).min(REACH);
        (act, round, age, ttl, flight.given_up, flight.looked).hash(mixer);
        (&flight.vote, flight.number, fence).hash(mixer);
    }

    /// Whether nobody holds or claims anything, and nothing is under way.
    pub(crate) fn is_still(&self, row: &Row) -> bool {
        let done = |life: &Life| matches!(life.machine.stage(), Stage::Failed | Stage::Released);
        let still = |wire: &Wire| wire.flights.is_empty() && wire.up;
        let still = |life: &Life| done(life) && life.wires.iter().all(still);
        self.lives.len() == row.attempts && self.lives.iter().all(|life| still(life))
    }

    /// Whether all is over: no command ever comes again.
    pub(crate) fn is_quiet(&self, row: &Row) -> bool {
        let rid = |wire: &Wire| wire.ghosts.is_empty();
        let over = |life: &Life| life.machine.is_finished() && life.wires.iter().all(rid);
        self.is_still(row) && self.lives.iter().all(|life| over(life))
    }

    /// A key of nobody that nothing is going to delete.
    pub(crate) fn has_ghost(&self, row: &Row) -> bool {
        let quiet = self.is_quiet(row);
        let stands = |(nth, master): (usize, &Master)| {
            let Some(key) = master.key.filter(|key| !key.prolonged) else { return false };
            let life = &self.lives[key.holder as usize];
            let repeated = (key.late || life.wires[nth].excused) && life.machine.next_time().is_some();
            quiet || !repeated
        };
        self.is_still(row) && self.masters.iter().enumerate().any(stands)
    }
}
