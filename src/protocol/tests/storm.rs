//! A storm: many short random lives of a small world, each step checked against what the protocol promises.
//!
//! The same seed gives the same life. A failure names its seed; run that one alone with `QUORLOCK_STORM=seed`.

use super::dice::Dice;
use super::scene::{MASTER_TIMEOUT, MS, S, five, ttl};
use super::world::{Actor, MASTERS, Wire, World, moment};
use crate::protocol::attempt::{Attempt, Stage};
use crate::protocol::quorum::{MasterSet, Quorum};

const LIVES: u64 = 12_000;
const STEPS: usize = 180;
const ATTEMPTS: usize = 7;
pub(super) const PATIENCE: u64 = MASTER_TIMEOUT.as_nanos() as u64;

/// What can be seen in a storm, so that a search of nothing does not pass.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sight {
    Won,
    Contended,
    NoQuorum,
    TooLate,
    Expired,
    Vanished,
    MaxHold,
    Renewed,
    Recovered,
    Healed,
    Released,
    HandedOn,
    Cut,
    Restart,
    LateExecution,
    Sweep,
    TokenAtOnce,
    TokenRaised,
    CountsAgain,
}

type Seen = [u32; Sight::CountsAgain as usize + 1];

pub(super) struct Storm {
    pub(super) world: World,
    pub(super) dice: Dice,
    pub(super) seen: Seen,
    pub(super) ttl: u64,
    /// How long the transport waits for an answer: the time limit, or a little more, since timers are late.
    pub(super) patience: u64,
    /// Whether the driver may be late with telling the time.
    stalls: bool,
    pub(super) quorum: Quorum,
    pub(super) last_holder: Option<usize>,
    pub(super) last_token: u64,
    /// How far each client's wall clock is off, in microseconds.
    skews: [u64; 3],
}

#[test]
fn whatever_happens_the_promises_hold() {
    let one = std::env::var("QUORLOCK_STORM").ok().and_then(|seed| seed.parse().ok());
    let mut total = Seen::default();
    for seed in one.map_or(0..LIVES, |seed: u64| seed..seed + 1) {
        let life = std::panic::catch_unwind(|| Storm::new(seed).live());
        let seen = life.unwrap_or_else(|_| panic!("in the life of seed {seed}"));
        total.iter_mut().zip(seen).for_each(|(total, seen)| *total += seen);
    }
    println!("{total:?}");
    assert!(one.is_some() || total.iter().all(|times| *times >= 20), "the storm was too calm: {total:?}");
}

impl Storm {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let clients = 2 + dice.below(2);
        let patience = if dice.one_in(2) { PATIENCE } else { PATIENCE + 20 * MS };
        let votes = if dice.one_in(4) { 4 } else { 3 };
        let quorum = five().with_min_votes(votes).unwrap();
        let wires = vec![<[Wire; MASTERS]>::default(); clients];
        let (ttl, stalls) = (if dice.one_in(2) { 1_000 } else { 3_000 }, dice.one_in(4));
        let skews = std::array::from_fn(|_| dice.roll() % 2_000_000);
        let overload = if dice.one_in(2) { 0 } else { 31 };
        let world = World { now: 10 * S, wires, overload, ..World::default() };
        Self {
            world,
            dice,
            seen: Seen::default(),
            ttl,
            patience,
            stalls,
            quorum,
            last_holder: None,
            last_token: 0,
            skews,
        }
    }

    fn live(mut self) -> Seen {
        for _ in 0..STEPS {
            self.step();
            self.check();
        }
        self.end();
        self.seen[Sight::LateExecution as usize] = self.world.late_executions;
        self.seen[Sight::Sweep as usize] = self.world.sweeps;
        self.seen
    }

    fn step(&mut self) {
        let client = self.dice.below(self.world.wires.len());
        let master = self.dice.below(MASTERS);
        let wire = &self.world.wires[client][master];
        match self.dice.below(100) {
            0..15 => _ = self.world.execute(client, master),
            15..30 => _ = self.world.hear(client, master),
            30..60 => self.round_trip(client),
            60..78 => self.pass_time(),
            78..84 => self.claim(client),
            84..88 => self.touch(),
            88..90 if wire.up => {
                let losing = self.dice.one_in(3);
                self.world.cut(client, master, || losing);
                self.saw(Sight::Cut);
            }
            90..95 if !wire.up => self.connect(client, master),
            // Another resource's lock, on the same counter.
            95 if self.dice.one_in(2) => self.world.masters[master].counter += 1,
            96 if self.dice.one_in(3) => {
                let longest = ttl(3_000).longest_stay();
                self.world.restart(master, u64::try_from(longest.as_nanos()).unwrap());
                self.saw(Sight::Restart);
            }
            97..100 if !wire.ghosts.is_empty() => self.haunt(client, master),
            _ => self.world.withdraw(client, master),
        }
    }

    /// All that one client asked is executed and heard, but for a random few masters.
    fn round_trip(&mut self, client: usize) {
        for master in 0..MASTERS {
            if !self.dice.one_in(4) {
                while self.world.execute(client, master) || self.world.hear(client, master) {}
            }
        }
    }

    pub(super) fn connect(&mut self, client: usize, master: usize) {
        self.world.connect(client, master, S + self.ttl * MS);
    }

    pub(super) fn haunt(&mut self, client: usize, master: usize) {
        let nth = self.dice.below(self.world.wires[client][master].ghosts.len());
        self.world.haunt(client, master, nth);
    }

    fn claim(&mut self, client: usize) {
        if self.world.actors.len() < ATTEMPTS {
            let now = moment(self.world.now);
            let watched = self.quorum.everyone().filter(|_| self.dice.one_in(2)).collect();
            let machine = Attempt::claim(self.quorum, ttl(self.ttl), MASTER_TIMEOUT, now).watching(watched);
            let proposal = if self.dice.one_in(2) { 0 } else { self.world.now / 1_000 + self.skews[client] };
            let fenced = self.dice.one_in(2);
            self.world.actors.push(Actor {
                client,
                machine: if fenced { machine.fenced(proposal) } else { machine },
                began: self.world.now,
                release_began: None,
                seen: Stage::Claiming,
                passed: false,
                deleting: MasterSet::EMPTY,
            });
            self.world.pump(self.world.actors.len() - 1);
        }
    }

    /// A user or a keeper does something to an attempt.
    fn touch(&mut self) {
        if self.world.actors.is_empty() {
            return;
        }
        let attempt = self.dice.below(self.world.actors.len());
        let now = moment(self.world.now);
        let actor = &mut self.world.actors[attempt];
        match self.dice.below(8) {
            0 => _ = actor.machine.extend(ttl(self.ttl), now),
            1 => {
                let cap = self.world.now + self.dice.roll() % (self.ttl * MS);
                actor.machine.end_hold_at(moment(cap), now);
            }
            2..5 => self.release(attempt),
            5 => actor.machine.abandon(now),
            _ => {}
        }
        self.world.pump(attempt);
    }

    pub(super) fn release(&mut self, attempt: usize) {
        let actor = &mut self.world.actors[attempt];
        if actor.is_valid(self.world.now) {
            actor.release_began = Some(self.world.now);
        }
        actor.machine.release(moment(self.world.now));
        self.world.pump(attempt);
    }

    /// The moments at which something is decided.
    pub(super) fn due(&self) -> impl Iterator<Item = u64> {
        let attempts = self.world.actors.iter().filter_map(|actor| actor.machine.next_time());
        let flights = self.world.wires.iter().flatten().flat_map(|wire| &wire.flights);
        let timeouts = flights.filter(|flight| !flight.answered).map(|flight| flight.sent + self.patience);
        attempts.map(|next| next.as_nanos()).chain(timeouts)
    }

    fn pass_time(&mut self) {
        let now = self.world.now;
        let mut moments: Vec<u64> = self.due().collect();
        moments
            .extend(self.world.actors.iter().filter_map(|actor| Some(actor.machine.deadline()?.as_nanos())));
        moments.extend(self.world.masters.iter().filter_map(|master| Some(master.key?.expires)));
        moments.extend(self.world.masters.iter().map(|master| master.quarantine));
        let around = |moment: &u64| [moment.saturating_sub(1), *moment, moment + 1];
        let mut moments: Vec<u64> = moments.iter().flat_map(around).filter(|moment| *moment > now).collect();
        moments.push(now + self.dice.roll() % (40 * MS));
        let mut target = moments[self.dice.below(moments.len())];
        let late = self.stalls && self.dice.one_in(2);
        if !late {
            target = self.due().fold(target, u64::min).max(now);
        }
        self.world.now = target;
        if self.dice.one_in(3) {
            let recovered = self.world.recover(self.quorum);
            self.seen[Sight::CountsAgain as usize] += recovered;
        }
        if !late {
            self.tell_time();
        }
    }
}
