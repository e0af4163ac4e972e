//! One run: from the seed to the verdict.

use std::sync::{Arc, Mutex};

use quorlock::protocol::fanout::Link;
use quorlock::protocol::votes::{Fault as Reason, Vote};
use tokio::sync::Notify;

use crate::machine::{Machine, Out};
use crate::plan::{Fault, Plan};
use crate::promise::{Breach, Promise};
use crate::sights::{Sight, Sights};
use crate::time::{MS, S, Stall};
use crate::trace::Trace;
use crate::transport::{Reply, drain, tell};
use crate::user::Desk;
use crate::wire::{Waiting, broken};
use crate::world::{Event, Note, Stage, World, locked, master_id};

/// Timeouts in a row that end a connection.
const STRIKES: u32 = 3;
/// Until when whoever can be connected is.
const CONNECTED: u64 = 3 * S;

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) breach: Option<Breach>,
    pub(crate) sights: Sights,
    pub(crate) trace: Trace,
}

pub(crate) struct Run {
    world: Arc<Mutex<World>>,
    machines: Vec<Machine>,
    heeds: fn(Promise) -> bool,
    /// All work ends.
    closing_time: Arc<Notify>,
    wins: Arc<Mutex<usize>>,
    over: bool,
}

impl Run {
    /// The run of `plan`, which ends at the first breach of a promise that it heeds.
    pub(crate) fn of(plan: Plan, heeds: fn(Promise) -> bool, trace: Trace) -> Outcome {
        let faults = plan.faults.clone();
        let (work, clocks) = (plan.work, plan.machines.clone());
        let world = Arc::new(Mutex::new(World::new(plan, trace)));
        let machines: Vec<Machine> = clocks
            .into_iter()
            .enumerate()
            .map(|(client, rate)| {
                let base = locked(&world).dice.below(MS);
                Machine::new(client, base, rate, &world)
            })
            .collect();
        {
            let mut world = locked(&world);
            world.book.set_clocks(machines.iter().map(|machine| machine.clock.clone()).collect());
            for (at, fault) in faults {
                world.at(at, Event::Fault(fault));
            }
            if let Some((client, at)) = world.plan.closes {
                world.at(at, Event::CloseAmidWork(client));
            }
            world.at(work, Event::Stage(Stage::Calm));
        }
        let mut run =
            Self { world, machines, heeds, closing_time: Arc::default(), wins: Arc::default(), over: false };
        run.begin();
        run.go();
        run.end()
    }

    fn begin(&mut self) {
        let (users, mut dice) = {
            let world = &mut *locked(&self.world);
            (world.plan.users, world.dice.fork())
        };
        for client in 0..self.machines.len() {
            for _ in 0..users {
                let (desk, dice) = (self.desk(client), dice.fork());
                let closing_time = self.closing_time.clone();
                self.spawn(client, async move {
                    tokio::select! {
                        biased;
                        () = closing_time.notified() => {}
                        () = desk.work(dice) => {}
                    }
                });
            }
        }
    }

    fn desk(&self, client: usize) -> Desk {
        let machine = &self.machines[client];
        let world = locked(&self.world);
        let plan = &world.plan;
        let steady = !plan
            .faults
            .iter()
            .any(|(_, fault)| matches!(fault, Fault::Pause { .. } | Fault::Suspend { .. }));
        let steady = steady && plan.stalls == 0;
        Desk {
            client,
            redlock: machine.redlock.clone().expect("not closed"),
            world: self.world.clone(),
            clock: machine.clock.clone(),
            ttl: plan.ttl,
            timeout: plan.timeout,
            resources: plan.resources,
            steady,
            drift: plan.drift(plan.ttl),
        }
    }

    /// The machine's runtime owns the task, and ends with the run.
    fn spawn(&mut self, client: usize, task: impl Future<Output = ()> + Send + 'static) {
        self.machines[client].runtime.spawn(task);
        self.machines[client].roused = true;
    }

    fn go(&mut self) {
        while !self.over {
            let (next, broken) = {
                let world = locked(&self.world);
                (world.next(), world.book.breaches.iter().any(|breach| (self.heeds)(breach.promise)))
            };
            let Some(next) = next.filter(|_| !broken) else { return };
            if let Some(machine) = self.machines.iter_mut().find(|machine| machine.is_behind(next)) {
                machine.run_to(next);
                continue;
            }
            let event = locked(&self.world).pop();
            match event {
                Some(Event::Arrival(call)) => locked(&self.world).arrive(call),
                Some(Event::Note(client, note)) => self.note(client, note),
                Some(Event::Fault(fault)) => self.strike(fault),
                Some(Event::MasterUp(master)) => self.bring_up(master),
                Some(Event::Thaw(master)) => locked(&self.world).thaw(master),
                Some(Event::Lapse(master, key)) => locked(&self.world).lapse(master, &key),
                Some(Event::CloseAmidWork(client)) => {
                    let desk = self.desk(client);
                    self.spawn(client, desk.close());
                }
                Some(Event::Resume(client)) => self.resume(client),
                Some(Event::Stage(stage)) => self.enter(stage),
                None => return,
            }
        }
    }

    fn now(&self) -> u64 {
        locked(&self.world).now
    }

    fn resume(&mut self, client: usize) {
        let (now, timers_first) = {
            let mut world = locked(&self.world);
            (world.now, world.dice.one_in(2))
        };
        let mut notes = self.machines[client].wake(now);
        if timers_first {
            // Timers may go off before what lies in the sockets is read.
            self.machines[client].catch_up();
            notes.sort_by_key(|note| !matches!(note, Note::TimedOut(_)));
        }
        for note in notes {
            self.note(client, note);
        }
        self.machines[client].catch_up();
    }

    fn note(&mut self, client: usize, note: Note) {
        let now = self.now();
        let machine = &mut self.machines[client];
        if machine.out.is_some() {
            machine.inbox.push(note);
            return;
        }
        if machine.clock.real() < now {
            // At the machine's next tick: it does nothing in between.
            locked(&self.world).at(machine.clock.next_tick(now), Event::Note(client, note));
            return;
        }
        machine.roused = true;
        let clock = machine.clock.clone();
        match note {
            Note::Answer(id, vote) => {
                let told = locked(&self.world).take_call(id);
                if let Some((waiting, link, master)) = told {
                    {
                        let mut world = locked(&self.world);
                        world.note_answer(client, master, link, &waiting, &vote);
                        // While a confirmation is booked, for one.
                        if let Some(millis) = world.stall() {
                            clock.plan(Some(Stall { reads: 0, millis }));
                        }
                    }
                    tell(&self.world, &clock, waiting, Reply::By(vote, link));
                    drain(&self.world, &clock, client, master);
                }
            }
            Note::TimedOut(id) => self.time_out(client, id),
            Note::Drain(master) => drain(&self.world, &clock, client, master),
            Note::Cut(master, link) => {
                let same = locked(&self.world).wires[client][master].link == link;
                if same {
                    self.cut(client, master);
                }
            }
            Note::Connect(master) => self.connect(client, master),
            Note::Changed(master, link, key) => {
                let watcher = {
                    let world = &mut *locked(&self.world);
                    let wire = &world.wires[client][master];
                    let same = wire.link == link && wire.is_open();
                    let watcher =
                        world.watchers[client].as_ref().filter(|_| same).and_then(|one| one.upgrade());
                    if watcher.is_some() {
                        world.sights.saw(Sight::ChangeTold);
                        let now = world.now;
                        world.trace.tell(now, || format!("c{client} is told of a change on m{}", master + 1));
                    }
                    watcher
                };
                if let Some(watcher) = watcher {
                    watcher.on_changed(master_id(master), key.as_deref());
                }
            }
            Note::QuarantineOver(master, link) => {
                let mut world = locked(&self.world);
                let wire = &world.wires[client][master];
                if wire.link == link && wire.is_open() {
                    world.join(client, master);
                }
            }
        }
        self.machines[client].see_stall();
    }

    fn time_out(&mut self, client: usize, id: u64) {
        let clock = self.machines[client].clock.clone();
        let (waiting, link, master, strikes) = {
            let world = &mut *locked(&self.world);
            let Some(call) = world.calls.get_mut(&id) else { return };
            let Some(ask) = call.ask.take() else { return };
            let (master, link, sent) = (call.master, call.link, call.sent);
            let waiting = Waiting { ask, number: call.number, took: call.took };
            if call.answer.is_some() {
                world.calls.remove(&id);
            }
            world.sights.saw(Sight::TimedOut);
            let now = world.now;
            world.trace.tell(now, || format!("c{client} hears nothing of m{} in time", master + 1));
            let wire = &mut world.wires[client][master];
            wire.under_way.remove(&id);
            if sent >= wire.last_strike && Link(wire.link) == link {
                wire.strikes += 1;
                wire.last_strike = now;
            }
            (waiting, link, master, wire.strikes)
        };
        tell(&self.world, &clock, waiting, Reply::By(Vote::Unknown(Reason::TimedOut), link));
        if strikes >= STRIKES {
            self.cut(client, master);
        } else {
            drain(&self.world, &clock, client, master);
        }
    }

    fn cut(&mut self, client: usize, master: usize) {
        let clock = self.machines[client].clock.clone();
        let (unanswered, unsent) = locked(&self.world).cut(client, master);
        for (waiting, link) in unanswered {
            tell(&self.world, &clock, waiting, Reply::By(Vote::Unknown(broken()), link));
        }
        for waiting in unsent {
            tell(&self.world, &clock, waiting, Reply::Unsent(Reason::NotConnected("connection lost".into())));
        }
    }

    fn connect(&mut self, client: usize, master: usize) {
        let connected = locked(&self.world).connect(client, master);
        if let Some((watcher, restarted)) = connected {
            watcher.on_link(master_id(master), restarted);
            let world = &mut *locked(&self.world);
            let now = world.now;
            for (holder, _) in world.book.holds_of(client) {
                world.book.look(&holder, now, &mut world.sights);
            }
        }
    }

    fn bring_up(&mut self, master: usize) {
        let world = &mut *locked(&self.world);
        world.sites[master].up = true;
        let now = world.now;
        world.trace.tell(now, || format!("m{} is up", master + 1));
    }

    fn strike(&mut self, fault: Fault) {
        let now = self.now();
        {
            let world = &mut *locked(&self.world);
            if world.calm {
                return;
            }
            world.trace.tell(now, || format!("fault: {fault:?}"));
            world.check_expiries();
        }
        match fault {
            Fault::Pause { client, lasts } => {
                locked(&self.world).saw(Sight::Paused);
                self.machines[client].pause(Out::Paused, now + lasts);
            }
            Fault::Suspend { client, lasts } => {
                locked(&self.world).saw(Sight::Suspended);
                self.machines[client].pause(Out::Suspended, now + lasts);
            }
            Fault::Stall { client, stall } => self.machines[client].clock.plan(Some(stall)),
            Fault::Cut { client, master } => self.note(client, {
                let world = &mut *locked(&self.world);
                world.sights.saw(Sight::Cut);
                Note::Cut(master, world.wires[client][master].link)
            }),
            fault => locked(&self.world).strike(fault),
        }
    }

    fn enter(&mut self, stage: Stage) {
        let now = self.now();
        let (timeout, quarantine) = {
            let world = locked(&self.world);
            (world.plan.timeout, world.quarantine())
        };
        locked(&self.world).trace.tell(now, || format!("-- {stage:?}"));
        // A machine that is stalled has its turn then.
        let awake = self.machines.iter().map(|machine| machine.clock.real()).max().unwrap_or(now).max(now);
        let settled = awake + CONNECTED + quarantine + quarantine / 8 + S;
        let next = match stage {
            Stage::Calm => {
                locked(&self.world).calm_down();
                self.closing_time.notify_waiters();
                for client in 0..self.machines.len() {
                    self.machines[client].clock.plan(None);
                    self.resume(client);
                    self.machines[client].roused = true;
                }
                locked(&self.world).at(settled, Event::Stage(Stage::Alone));
                (awake + CONNECTED + 2 * S + 4 * timeout, Stage::Ghosts)
            }
            Stage::Ghosts => {
                locked(&self.world).check_ghosts();
                return;
            }
            Stage::Alone => {
                let (desk, wins) = (self.desk(0), self.wins.clone());
                self.spawn(0, desk.contend("alone", 4 * timeout, wins));
                (now + 6 * timeout, Stage::Together)
            }
            Stage::Together => {
                let mut world = locked(&self.world);
                match std::mem::take(&mut *locked(&self.wins)) {
                    1 => world.saw(Sight::LoneWin),
                    _ => {
                        let words = "with w good masters one alone does not win".into();
                        world.book.breach(Promise::LoneWin, now, words);
                    }
                }
                drop(world);
                for client in 0..self.contenders() {
                    let (desk, wins) = (self.desk(client), self.wins.clone());
                    self.spawn(client, desk.contend("together", 30 * S, wins));
                }
                (now + 32 * S, Stage::Close)
            }
            Stage::Close => {
                let (won, all) = (*locked(&self.wins), self.contenders());
                if won == all {
                    locked(&self.world).saw(Sight::EverybodyWon);
                } else {
                    let words = format!("{won} of {all} contenders won in 30 s");
                    locked(&self.world).book.breach(Promise::EverybodyWins, now, words);
                }
                drop(self.let_go());
                for client in 0..self.machines.len() {
                    let redlock = self.machines[client].redlock.take().expect("closed once");
                    self.spawn(client, async move {
                        let _ = redlock.close().await;
                    });
                }
                (now + S + 4 * timeout, Stage::End)
            }
            Stage::End => return self.look_for_leaks(),
        };
        locked(&self.world).at(next.0, Event::Stage(next.1));
    }

    /// All but the one that was closed before.
    fn contenders(&self) -> usize {
        self.machines.len() - usize::from(locked(&self.world).plan.closes.is_some())
    }

    fn let_go(&self) -> Vec<quorlock::Hold> {
        locked(&self.world).book.let_go()
    }

    fn look_for_leaks(&mut self) {
        self.over = true;
        let now = self.now();
        for machine in &self.machines {
            let tasks = machine.runtime.metrics().num_alive_tasks();
            if tasks > 0 {
                let words = format!("c{} has {tasks} tasks after it was closed", machine.client);
                locked(&self.world).book.breach(Promise::NoLeak, now, words);
            }
            locked(&self.world).saw(Sight::Closed);
        }
        let world = &mut *locked(&self.world);
        world.check_ghosts();
        world.book.check_roll_backs(now);
    }

    fn end(self) -> Outcome {
        drop(self.let_go());
        let calls = std::mem::take(&mut locked(&self.world).calls);
        drop(calls);
        let waiting: Vec<Waiting> = {
            let mut world = locked(&self.world);
            world.wires.iter_mut().flatten().flat_map(|wire| wire.shut(Reason::Closed)).collect()
        };
        drop(waiting);
        for machine in self.machines {
            drop(machine.redlock);
            drop(machine.runtime);
        }
        let world = &mut *locked(&self.world);
        let now = world.now;
        world.book.check_exclusion(now, &mut world.sights);
        world.book.check_tokens(now);
        let mut breaches = std::mem::take(&mut world.book.breaches);
        breaches.retain(|breach| (self.heeds)(breach.promise));
        Outcome {
            breach: (!breaches.is_empty()).then(|| breaches.swap_remove(0)),
            sights: world.sights.clone(),
            trace: std::mem::take(&mut world.trace),
        }
    }
}
