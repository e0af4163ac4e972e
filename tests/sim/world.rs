//! The masters, the connections, and all that is yet to happen, in order.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use quorlock::protocol::fanout::{Act, Link};
use quorlock::protocol::quorum::MasterId;
use quorlock::protocol::votes::Vote;
use quorlock::transport::LinkWatcher;

use crate::book::Book;
use crate::dice::Dice;
use crate::plan::{Fault, Plan};
use crate::sights::{Sight, Sights};
use crate::site::{Kept, Site};
use crate::time::{MS, US};
use crate::trace::Trace;
use crate::wire::{Call, Waiting, Wire};

/// Something that happens at a moment of real time.
#[derive(Debug)]
pub(crate) enum Event {
    /// A command reaches its master.
    Arrival(u64),
    /// A client's machine takes note of something; not while it is out.
    Note(usize, Note),
    Fault(Fault),
    MasterUp(usize),
    Thaw(usize),
    /// A key on a master may be over, which the master notices by itself.
    Lapse(usize, Bytes),
    /// The client is closed while its users are at work.
    CloseAmidWork(usize),
    /// The machine has its turn again.
    Resume(usize),
    Stage(Stage),
}

#[derive(Debug)]
pub(crate) enum Note {
    Answer(u64, Vote),
    TimedOut(u64),
    /// What waits may be sent.
    Drain(usize),
    /// The connection of this number broke.
    Cut(usize, u32),
    Connect(usize),
    QuarantineOver(usize, u32),
    /// What the connection of this number is told: the key changed, or any key may have.
    Changed(usize, u32, Option<Bytes>),
}

/// The parts of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stage {
    Calm,
    Ghosts,
    Alone,
    Together,
    Close,
    End,
}

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) now: u64,
    pub(crate) sites: Vec<Site>,
    /// By client and master.
    pub(crate) wires: Vec<Vec<Wire>>,
    pub(crate) watchers: Vec<Option<Weak<dyn LinkWatcher>>>,
    pub(crate) calls: BTreeMap<u64, Call>,
    pub(crate) book: Book,
    pub(crate) sights: Sights,
    pub(crate) trace: Trace,
    pub(crate) dice: Dice,
    /// No faults any more.
    pub(crate) calm: bool,
    events: BTreeMap<(u64, u64), Event>,
    count: u64,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("seed", &self.plan.seed).field("now", &self.now).finish_non_exhaustive()
    }
}

impl World {
    pub(crate) fn new(plan: Plan, trace: Trace) -> Self {
        let (clients, masters) = (plan.machines.len(), plan.masters.len());
        Self {
            now: 0,
            sites: plan.masters.iter().map(|clock| Site::new(*clock)).collect(),
            wires: (0..clients).map(|_| (0..masters).map(|_| Wire::new()).collect()).collect(),
            watchers: vec![None; clients],
            calls: BTreeMap::new(),
            book: Book::new(&plan),
            sights: Sights::default(),
            trace,
            dice: Dice::new(plan.seed ^ 0x5eed),
            calm: false,
            events: BTreeMap::new(),
            count: 0,
            plan,
        }
    }

    /// `event` will happen at `at`; its key, to take it back.
    pub(crate) fn at(&mut self, at: u64, event: Event) -> (u64, u64) {
        self.count += 1;
        let key = (at.max(self.now), self.count);
        self.events.insert(key, event);
        key
    }

    pub(crate) fn take_back(&mut self, key: (u64, u64)) {
        self.events.remove(&key);
    }

    pub(crate) fn next(&self) -> Option<u64> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        let ((at, _), event) = self.events.pop_first()?;
        self.now = at;
        Some(event)
    }

    /// Whether the machine stalls at this very moment, and for how many milliseconds.
    pub(crate) fn stall(&mut self) -> Option<u64> {
        let chances = self.plan.stalls;
        if self.calm || chances == 0 || !self.dice.one_in(chances) {
            return None;
        }
        Some(self.plan.stall(&mut self.dice))
    }

    pub(crate) fn saw(&mut self, sight: Sight) {
        self.sights.saw(sight);
    }

    /// How a holder id is called in the trace.
    pub(crate) fn short(&self, holder: &Bytes) -> String {
        self.book.life(holder).map_or_else(|| "h?".into(), |life| format!("h{}", life.nth))
    }

    /// The command goes out.
    pub(crate) fn put_on_wire(&mut self, client: usize, master: usize, waiting: Waiting, now: u64) {
        let id = self.count + 1;
        let (near, timeout, late) = (self.plan.near, self.plan.timeout, self.dice.below(MS));
        let jitter = self.dice.below(near + 1);
        let wire = &mut self.wires[client][master];
        let far = if now < wire.route.until { wire.route.there } else { jitter };
        let arrives = (now + far + US).max(wire.last_arrival + 1).max(wire.route.there_blocked);
        wire.last_arrival = arrives;
        wire.under_way.insert(id);
        let (link, process) = (Link(wire.link), wire.process);
        let Waiting { ask, number, took } = waiting;
        let (dispatch, keys, holder) = (*ask.dispatch(), ask.keys().to_vec(), ask.holder());
        let arrives = self.at(arrives, Event::Arrival(id));
        let times_out = self.at(now + timeout + late, Event::Note(client, Note::TimedOut(id)));
        self.trace.tell(now, || {
            let to = arrives.0.saturating_sub(now) as f64 / 1e6;
            format!(
                "c{client} sends {:?} of {} to {} (link {}, {to:.3} ms away)",
                dispatch.act,
                self.book.life(&holder).map_or(0, |life| life.nth),
                dispatch.to,
                link.0
            )
        });
        let breaks =
            dispatch.act.creates() && !self.calm && self.plan.cuts > 0 && self.dice.one_in(self.plan.cuts);
        if breaks {
            self.sights.saw(Sight::Cut);
            let at = now + self.dice.below(far.min(timeout) + 2 * near + US);
            self.at(at, Event::Note(client, Note::Cut(master, link.0)));
        }
        let call = Call {
            client,
            master,
            link,
            process,
            ask: Some(ask),
            number,
            took,
            dispatch,
            keys,
            holder,
            sent: now,
            arrives,
            times_out,
            answer: None,
        };
        self.calls.insert(id, call);
    }

    /// A command reaches its master, or what is there.
    pub(crate) fn arrive(&mut self, id: u64) {
        let now = self.now;
        let Some(call) = self.calls.get_mut(&id) else { return };
        let (client, master) = (call.client, call.master);
        let site = &mut self.sites[master];
        if !site.up || site.process != call.process {
            if call.ask.is_none() {
                self.calls.remove(&id);
            }
            self.sights.saw(Sight::LostOnTheWay);
            return;
        }
        if site.frozen {
            site.waiting.push(id);
            return;
        }
        let shown = site.now(now);
        let dispatch = call.dispatch;
        let (keys, holder) = (&call.keys, &call.holder);
        let before = site.count(keys, holder, now);
        let stood: Vec<_> = keys.iter().map(|key| site.look(key, now)).collect();
        let act = (dispatch.act, dispatch.fence);
        let (vote, took) = match keys.as_slice() {
            [key] => site.keys().execute_fenced(act, key, holder, dispatch.ttl, shown),
            keys => site.keys().execute_all_fenced(act, keys, holder, dispatch.ttl, shown),
        };
        call.took = took;
        let (late, sent) = (call.ask.is_none(), call.sent);
        let ours = [before, site.count(keys, holder, now), keys.len()];
        let (holder, keys, link) = (call.holder.clone(), call.keys.clone(), call.link);
        for (key, stood) in keys.iter().zip(&stood) {
            if self.sites[master].look(key, now) != *stood {
                self.tell_of_change(master, key);
            }
        }
        for bell in self.sites[master].keys().take_rung() {
            self.tell_of_change(master, &bell);
        }
        self.book.on_executed(&holder, &dispatch, &vote, ours, now);
        self.trace.tell(now, || {
            let nth = self.book.life(&holder).map_or(0, |life| life.nth);
            format!(
                "m{} does {:?} of h{nth}{}: {}",
                master + 1,
                dispatch.act,
                if late { ", late" } else { "" },
                word(&vote)
            )
        });
        if late {
            self.sights.saw(Sight::LateExecution);
            self.calls.remove(&id);
            return;
        }
        let listens = match dispatch.act {
            Act::Watch => matches!(vote, Vote::Held(_)),
            act => act == Act::QueueUp,
        };
        if listens && self.plan.tells {
            self.watch(client, master, link.0, &keys);
        }
        let near = self.dice.below(self.plan.near + 1);
        let near = match dispatch.act {
            Act::Heal => self.delay_of_heal(master, &holder, sent + self.plan.timeout, near),
            _ => near,
        };
        let back = self.wires[client][master].comes_back(now, near);
        let dies = dispatch.act.votes() && vote == Vote::Granted && self.plan.reads_late && !self.calm;
        if dies && self.dice.one_in(25) {
            // While the answer is on its way.
            let fault = Fault::Crash { master, kept: Kept::Nothing, down: self.dice.between(MS, 50 * MS) };
            let at = now + self.dice.below(back - now);
            self.at(at, Event::Fault(fault));
        }
        let key = self.at(back, Event::Note(client, Note::Answer(id, vote.clone())));
        if let Some(call) = self.calls.get_mut(&id) {
            call.answer = Some((key, vote));
        }
    }

    /// The connection will be told once of a change of these keys.
    fn watch(&mut self, client: usize, master: usize, link: u32, keys: &[Bytes]) {
        for key in keys {
            self.sites[master].watched.insert((key.clone(), client, link));
            if let Some((_, until)) = self.sites[master].look(key, self.now) {
                // A master looks for keys that are over ten times a second.
                let noticed = until + self.dice.below(100 * MS);
                self.at(noticed, Event::Lapse(master, key.clone()));
            }
        }
    }

    pub(crate) fn lapse(&mut self, master: usize, key: &Bytes) {
        let now = self.now;
        if self.sites[master].frozen {
            self.at(now + 10 * MS, Event::Lapse(master, key.clone()));
        } else if self.sites[master].up && self.sites[master].look(key, now).is_none() {
            self.tell_of_change(master, key);
        }
    }

    /// Whoever watches the key is told: as a rule once, in the order of the answers. It may be lost, come late, or twice, or
    /// be one of so many that nobody knows which.
    pub(crate) fn tell_of_change(&mut self, master: usize, key: &Bytes) {
        let now = self.now;
        for (client, link) in self.sites[master].forget_watchers(key) {
            if self.wires[client][master].link != link {
                continue;
            }
            let near = self.dice.below(self.plan.near + 1);
            let back = self.wires[client][master].comes_back(now, near);
            let luck = if self.calm { 0 } else { self.dice.below(12) };
            let told = |key| Event::Note(client, Note::Changed(master, link, key));
            let key = Some(key.clone());
            match luck {
                8 => self.saw(Sight::ChangeUntold),
                9 => {
                    let late = self.dice.below(self.plan.ttl);
                    self.at(back + late, told(key));
                }
                10 => {
                    self.at(back, told(key.clone()));
                    self.at(back + US, told(key));
                }
                11 => {
                    self.saw(Sight::AnyChangeTold);
                    self.at(back, told(None));
                }
                _ => _ = self.at(back, told(key)),
            }
        }
    }

    /// Heals are answered just after the end that they were meant to prevent, where that can be: it is near, or it comes
    /// since the other masters restart.
    fn delay_of_heal(&mut self, master: usize, holder: &Bytes, limit: u64, near: u64) -> u64 {
        let now = self.now;
        if let Some(end) = self.book.deadline(holder).filter(|end| *end > now && *end + 4 * MS < limit) {
            return end + 2 * MS - now;
        }
        if self.calm || limit < now + 60 * MS || !self.dice.one_in(4) {
            return near;
        }
        for other in (0..self.sites.len()).filter(|other| *other != master) {
            let at = now + self.dice.below(2 * MS);
            self.at(at, Event::Fault(Fault::Crash { master: other, kept: Kept::Nothing, down: MS }));
        }
        limit - now - 3 * MS
    }
}

pub(crate) fn word(vote: &Vote) -> String {
    match vote {
        Vote::Granted => "yes".into(),
        Vote::Held(_) => "another's".into(),
        Vote::Absent => "absent".into(),
        Vote::Failed(fault) => format!("failed ({fault})"),
        Vote::Unknown(fault) => format!("unknown ({fault})"),
    }
}

pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn master_id(master: usize) -> MasterId {
    MasterId::new(master).expect("few masters")
}
