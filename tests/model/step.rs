//! What can happen next in a world, and what it comes to.

use std::rc::Rc;

use quorlock::protocol::attempt::{Attempt, Stage};
use quorlock::protocol::fanout::{Act, Dispatch, Fence};
use quorlock::protocol::fencing::{self, Counters};
use quorlock::protocol::news::News;
use quorlock::protocol::quorum::MasterId;
use quorlock::protocol::time::Moment;
use quorlock::protocol::verdict::Verdict;
use quorlock::protocol::votes::{Fault, Vote};

use super::master::Command;
use super::promise::{Seen, Sight};
use super::row::{Habit, MASTER_TIMEOUT, Row, TICK};
use super::world::{Flight, Life, World};

/// Lives and masters by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Start,
    ReadClock(usize),
    Execute(usize, usize, usize),
    Repeat(usize, usize),
    Haunt(usize, usize, usize),
    Hear(usize, usize, usize),
    GiveUp(usize, usize),
    Break(usize, usize),
    Connect(usize, usize),
    Extend(usize, bool),
    Release(usize),
    Abandon(usize),
    Wake(usize),
    Tick,
    Restart(usize, bool),
    Forget(usize),
    Expire(usize),
    Readmit(usize),
    ReadCounters(usize),
    Recover(usize),
    Bump(usize),
    Replay(usize, usize),
}

/// What a step came to, beside the next world.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effect {
    pub(crate) said: Option<(Act, Vote)>,
    pub(crate) seen: Seen,
}

/// The next world.
pub(crate) fn take(row: &Row, before: &World, step: Step) -> (World, Effect) {
    let mut world = before.clone();
    let mut effect = Effect::default();
    let now = world.now;
    match step {
        Step::Start => world.start(row),
        Step::ReadClock(life) => world.life(life).read_clock(row, now),
        Step::Execute(life, master, nth) => world.execute(row, (life, master, nth), &mut effect),
        Step::Repeat(life, master) => {
            world.budget.repeats -= 1;
            let flight = world.lives[life].wires[master].flights[0].clone();
            effect.said = Some((flight.dispatch.act, world.command(row, life, master, &flight, false).0));
        }
        Step::Haunt(life, master, nth) => {
            let (flight, _) = world.life(life).wires[master].ghosts.remove(nth);
            let (vote, _) = world.command(row, life, master, &flight, true);
            let late = vote == Vote::Granted && flight.dispatch.act.creates();
            effect.seen.note(Sight::LateExecution, late);
            effect.said = Some((flight.dispatch.act, vote));
        }
        Step::Hear(life, master, nth) => world.hear(life, master, nth, &mut effect),
        Step::GiveUp(life, master) => {
            world.budget.silences -= 1;
            let wire = &mut world.life(life).wires[master];
            let nth = wire.flights.iter().position(|flight| !flight.given_up).expect("somebody waits");
            let (flight, link) = (&mut wire.flights[nth], wire.link);
            flight.given_up = true;
            let (dispatch, over) = (flight.dispatch, flight.vote.is_some());
            wire.excused |= dispatch.act == Act::Release;
            if over {
                wire.flights.remove(nth);
            }
            let fault = Fault::TimedOut;
            let failed = row.has(Habit::CallsSilenceFailure);
            let vote = if failed { Vote::Failed(fault) } else { Vote::Unknown(fault) };
            effect.said = Some((dispatch.act, vote.clone()));
            world.told(life, &mut effect, |life| life.answer(&dispatch, (vote, None), link, now));
        }
        Step::Break(life, master) => world.cut(life, master, &mut effect),
        Step::Connect(life, master) => world.connect(row, life, master, &mut effect),
        Step::Extend(life, short) => {
            world.budget.extensions -= 1;
            let ttl = row.ttl(if short { row.short.unwrap_or(row.ttl) } else { row.ttl });
            world.told(life, &mut effect, |life| {
                life.machine.extend(ttl, Moment::from_nanos(now));
                life.pump(now)
            });
        }
        Step::Release(life) => world.input(life, &mut effect, Attempt::release),
        Step::Abandon(life) => world.input(life, &mut effect, Attempt::abandon),
        Step::Wake(life) => world.input(life, &mut effect, Attempt::on_time),
        Step::Tick => world.tick(row, &mut effect),
        Step::Restart(master, keeps) => world.restart(row, master, keeps),
        Step::Forget(master) => {
            world.budget.forgets -= 1;
            world.masters[master].key = None;
        }
        Step::Expire(master) => world.masters[master].key = None,
        Step::Readmit(master) => {
            world.masters[master].quarantine = 0;
            world.masters[master].begun = 0;
        }
        Step::ReadCounters(master) => world.masters[master].told = world.greatest_of_others(row, master),
        Step::Recover(nth) => {
            let master = &mut world.masters[nth];
            master.counter = master.counter.max(master.told.take().unwrap_or(0));
            master.uncounted = false;
            effect.seen.note(Sight::CountsAgain, true);
        }
        Step::Bump(master) => {
            world.budget.bumps -= 1;
            world.masters[master].counter += 1;
        }
        Step::Replay(life, master) => {
            world.budget.replays -= 1;
            let claim = Dispatch {
                to: MasterId::new(master).expect("few masters"),
                act: Act::Claim,
                round: 1,
                stamp: world.moment(),
                ttl: row.ttl(row.ttl),
                urgent: false,
                fence: Some(Fence::Propose(row.proposals[life])),
            };
            let flight = Flight { dispatch: claim, vote: None, number: None, given_up: true, looked: false };
            effect.said = Some((Act::Claim, world.command(row, life, master, &flight, false).0));
        }
    }
    world.observe(row, before, &mut effect);
    (world, effect)
}

impl World {
    pub(crate) fn life(&mut self, nth: usize) -> &mut Life {
        Rc::make_mut(&mut self.lives[nth])
    }

    fn input(&mut self, life: usize, effect: &mut Effect, input: fn(&mut Attempt, Moment)) {
        let now = self.now;
        self.told(life, effect, |life| {
            input(&mut life.machine, Moment::from_nanos(now));
            life.pump(now)
        });
    }

    /// Does what the driver does after each input: a claim that was not won is given up.
    fn told(&mut self, nth: usize, effect: &mut Effect, input: impl FnOnce(&mut Life) -> News) {
        let now = self.now;
        let life = self.life(nth);
        let mut news = input(life);
        let verdict = life.machine.verdict();
        if news.verdict && verdict != Some(Verdict::Won) {
            life.machine.abandon(Moment::from_nanos(now));
            life.pump(now);
            news.verdict = true;
        }
        effect.seen.hear(news, verdict, life, now);
    }

    /// What a master that lost its counter may be told: the counters of as many others as it takes, the least of them.
    pub(crate) fn greatest_of_others(&self, row: &Row, master: usize) -> Option<u64> {
        let others = self.masters[..row.masters].iter().enumerate().filter(|(nth, _)| *nth != master);
        let mut others: Vec<u64> =
            others.filter(|(_, other)| !other.uncounted).map(|(_, other)| other.counter).collect();
        others.sort_unstable();
        others.truncate(fencing::reads_to_recover(row.quorum()));
        let others = others.into_iter().map(|counter| Counters::from([(0, counter)]));
        let counters = fencing::recover(row.quorum(), others)?;
        Some(counters.get(&0).copied().unwrap_or(0))
    }

    fn command(
        &mut self,
        row: &Row,
        life: usize,
        master: usize,
        flight: &Flight,
        late: bool,
    ) -> (Vote, Option<u64>) {
        let command = Command {
            act: flight.dispatch.act,
            fence: flight.dispatch.fence,
            holder: Self::holder(row, life),
            ttl: flight.dispatch.ttl.as_duration().as_nanos() as u64,
            given_up: flight.given_up,
            looked: flight.looked,
            late,
            admitted: self.lives[life].wires[master].trusted,
        };
        self.masters[master].execute(row, command, self.now)
    }

    fn execute(&mut self, row: &Row, at: (usize, usize, usize), effect: &mut Effect) {
        let (life, master, nth) = at;
        let flight = self.lives[life].wires[master].flights[nth].clone();
        if row.has(Habit::GetsThenDeletes) && flight.dispatch.act == Act::Release && !flight.looked {
            let ours = self.masters[master].key.is_some_and(|key| key.holder == Self::holder(row, life));
            if ours {
                self.life(life).wires[master].flights[nth].looked = true;
                return;
            }
        }
        let (vote, number) = self.command(row, life, master, &flight, false);
        effect.said = Some((flight.dispatch.act, vote.clone()));
        let prompt = !row.slow && !self.lives[life].clockless;
        let wire = &mut self.life(life).wires[master];
        if flight.given_up {
            wire.flights.remove(nth);
            return;
        }
        (wire.flights[nth].vote, wire.flights[nth].number) = (Some(vote), number);
        if prompt {
            self.hear(life, master, nth, effect);
        }
    }

    fn hear(&mut self, life: usize, master: usize, nth: usize, effect: &mut Effect) {
        let now = self.now;
        let wire = &mut self.life(life).wires[master];
        let (flight, link) = (wire.flights.remove(nth).expect("it is there"), wire.link);
        let vote = flight.vote.expect("it is executed");
        let act = flight.dispatch.act;
        effect.seen.answered(&self.lives[life], act, &vote);
        effect.said = Some((act, vote.clone()));
        let had = self.lives[life].token();
        self.told(life, effect, |life| life.answer(&flight.dispatch, (vote, flight.number), link, now));
        let has = had.is_none() && self.lives[life].token().is_some();
        effect.seen.note(Sight::TokenAtOnce, has && act == Act::Claim);
        effect.seen.note(Sight::TokenRaised, has && act == Act::Raise);
        effect.seen.note(Sight::TokenAfterToken, has && self.tokens().count() > 1);
    }

    /// What is unexecuted on a connection that breaks may be executed yet, unless the process is gone.
    fn cut(&mut self, life: usize, master: usize, effect: &mut Effect) {
        let (now, alive) = (self.now, self.lives[life].wires[master].run == self.masters[master].run);
        self.budget.breaks -= u8::from(alive);
        let wire = &mut self.life(life).wires[master];
        wire.up = false;
        let (link, flights) = (wire.link, std::mem::take(&mut wire.flights));
        for flight in &flights {
            wire.excused |= flight.dispatch.act == Act::Release;
            if alive && flight.vote.is_none() {
                let ghost = Flight { given_up: true, ..flight.clone() };
                wire.ghosts.push((ghost, None));
            }
        }
        for flight in flights.into_iter().filter(|flight| !flight.given_up) {
            let broken = Vote::Unknown(Fault::Broken("cut".into()));
            self.told(life, effect, |life| life.answer(&flight.dispatch, (broken, None), link, now));
        }
    }

    fn connect(&mut self, row: &Row, life: usize, master: usize, effect: &mut Effect) {
        let (now, run) = (self.now, self.masters[master].run);
        let wire = &mut self.life(life).wires[master];
        let restarted = wire.run != run;
        (wire.up, wire.run, wire.link) = (true, run, wire.link + 1);
        for (_, limit) in &mut wire.ghosts {
            // The kernel gives the old connection up before the last sweep of the new one.
            limit.get_or_insert(now + 250 * TICK + row.ttl * TICK);
        }
        let id = MasterId::new(master).expect("few masters");
        self.told(life, effect, |life| {
            life.machine.on_link(id, restarted, Moment::from_nanos(now));
            life.pump(now)
        });
    }

    fn restart(&mut self, row: &Row, master: usize, keeps: bool) {
        let quarantine = self.now + row.policy().quarantine().as_nanos() as u64;
        let quarantine = if row.has(Habit::SkipsQuarantine) { 0 } else { quarantine };
        *(if keeps { &mut self.budget.restarts } else { &mut self.budget.crashes }) -= 1;
        self.masters[master].restart(keeps, quarantine);
        self.masters[master].begun = self.lives.len();
        let run = self.masters[master].run;
        for life in 0..self.lives.len() {
            let wire = &mut self.life(life).wires[master];
            wire.ghosts.clear();
            if row.has(Habit::VotesInQuarantine) {
                (wire.run, wire.trusted) = (run, true);
            }
        }
    }

    /// Time passes by one tick, or to a little before the next moment at which anything changes.
    fn tick(&mut self, row: &Row, effect: &mut Effect) {
        self.now += self.pause().unwrap_or(TICK);
        let now = self.now;
        self.masters.iter_mut().for_each(|master| master.pass_time(now));
        for life in 0..self.lives.len() {
            for wire in &mut self.life(life).wires {
                wire.ghosts.retain(|(_, limit)| limit.is_none_or(|limit| now < limit));
            }
            if !row.late && !self.lives[life].clockless {
                self.input(life, effect, Attempt::on_time);
            }
        }
    }
}

impl Life {
    fn read_clock(&mut self, row: &Row, now: u64) {
        self.clockless = false;
        let (quorum, ttl) = (row.quorum(), row.ttl(row.ttl));
        self.machine = Attempt::claim(quorum, ttl, MASTER_TIMEOUT, Moment::from_nanos(now));
        while let Some(dispatch) = self.machine.next_dispatch() {
            self.wires[dispatch.to.index()].flights[0].dispatch = dispatch;
        }
    }

    /// Whether a user may give the lease back, or drop what is left of it.
    pub(crate) fn can_release(&self) -> bool {
        matches!(self.machine.stage(), Stage::Held | Stage::Lost(_)) && !self.clockless
    }
}
