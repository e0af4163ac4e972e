//! What the network and the masters do of themselves: break, come back, admit, forget.

use std::sync::Arc;

use bytes::Bytes;
use quorlock::protocol::fanout::Link;
use quorlock::protocol::fencing::{self, Counters};
use quorlock::protocol::quorum::Quorum;
use quorlock::protocol::votes::{Fault as Reason, Vote};
use quorlock::transport::LinkWatcher;

use crate::plan::Fault;
use crate::sights::Sight;
use crate::site::{Joined, Kept};
use crate::time::{MS, nanos};
use crate::wire::{Gate, Waiting};
use crate::world::{Event, Note, World, word};

impl World {
    pub(crate) fn quarantine(&self) -> u64 {
        nanos(self.plan.policy.quarantine())
    }

    /// The ask of a call that is answered now.
    pub(crate) fn take_call(&mut self, id: u64) -> Option<(Waiting, Link, usize)> {
        let mut call = self.calls.remove(&id)?;
        let ask = call.ask.take()?;
        self.take_back(call.times_out);
        self.wires[call.client][call.master].under_way.remove(&id);
        Some((Waiting { ask, number: call.number, took: call.took }, call.link, call.master))
    }

    pub(crate) fn note_answer(
        &mut self,
        client: usize,
        master: usize,
        link: Link,
        waiting: &Waiting,
        vote: &Vote,
    ) {
        let (now, dispatch) = (self.now, waiting.ask.dispatch());
        let wire = &mut self.wires[client][master];
        let current = Link(wire.link) == link && wire.is_open();
        if current {
            wire.strikes = 0;
        } else {
            self.sights.saw(Sight::ReadLate);
        }
        match (dispatch.act, vote) {
            (quorlock::protocol::fanout::Act::Heal, Vote::Granted) => self.sights.saw(Sight::Healed),
            (quorlock::protocol::fanout::Act::Renew, Vote::Absent) => self.sights.saw(Sight::KeyLost),
            _ => {}
        }
        let short = self.short(&waiting.ask.holder());
        let act = dispatch.act;
        self.trace.tell(now, || {
            format!("c{client} hears m{} about {act:?} of {short}: {}", master + 1, word(vote))
        });
    }

    /// The connection is gone; whose asks are to be answered as unknown, and which were never sent.
    pub(crate) fn cut(&mut self, client: usize, master: usize) -> (Vec<(Waiting, Link)>, Vec<Waiting>) {
        let now = self.now;
        if !self.wires[client][master].is_open() {
            return Default::default();
        }
        self.trace.tell(now, || format!("c{client} loses its connection to m{}", master + 1));
        let wire = &mut self.wires[client][master];
        let unsent = wire.shut(Reason::NotConnected("connection lost".into()));
        let link = Link(wire.link);
        wire.under_way.clear();
        // Also what timed out and never arrived.
        let stream = self
            .calls
            .iter()
            .filter(|(_, call)| (call.client, call.master, call.link) == (client, master, link));
        let stream: Vec<u64> = stream.map(|(id, _)| *id).collect();
        let mut unanswered = Vec::new();
        // What was sent first arrives first, if at all.
        let mut arrives = now;
        let mut lost = false;
        for id in stream {
            let Some(mut call) = self.calls.remove(&id) else { continue };
            if let Some((key, vote)) = &call.answer
                && self.plan.reads_late
                && self.dice.one_in(2)
            {
                // It lies in a buffer, and is read when the next connection may be up.
                self.take_back(*key);
                self.take_back(call.times_out);
                let at = now + self.dice.below(2 * self.plan.timeout + 100 * MS);
                self.at(at, Event::Note(client, Note::Answer(id, vote.clone())));
                self.calls.insert(id, call);
                continue;
            }
            if let Some(ask) = call.ask.take() {
                unanswered.push((Waiting { ask, number: call.number, took: call.took }, link));
                self.take_back(call.times_out);
            }
            if call.answer.is_some() {
                self.sights.saw(Sight::AnswerLost);
                continue;
            }
            self.take_back(call.arrives);
            lost |= !self.dice.one_in(self.plan.late);
            if lost {
                self.sights.saw(Sight::LostOnTheWay);
                continue;
            }
            arrives = (now + self.dice.below(self.plan.latest)).max(arrives + 1);
            call.arrives = self.at(arrives, Event::Arrival(id));
            self.calls.insert(id, call);
        }
        self.dial_later(client, master);
        (unanswered, unsent)
    }

    /// The supervisor's pause: it doubles from 50 ms to a second, half of it by chance.
    fn dial_later(&mut self, client: usize, master: usize) {
        let wire = &mut self.wires[client][master];
        let pause = ((50 * MS) << wire.failures.min(10)).min(1_000 * MS);
        wire.failures += 1;
        let at = self.now + pause / 2 + self.dice.below(pause / 2);
        self.at(at, Event::Note(client, Note::Connect(master)));
    }

    /// Dials; who is to be told of the connection, and whether the master is not the process it was.
    pub(crate) fn connect(&mut self, client: usize, master: usize) -> Option<(Arc<dyn LinkWatcher>, bool)> {
        let watcher = self.watchers[client].as_ref()?.upgrade()?;
        let (now, site) = (self.now, &self.sites[master]);
        let route = self.wires[client][master].route;
        if !site.up || site.frozen || now < route.there_blocked || now < route.back_blocked {
            self.dial_later(client, master);
            return None;
        }
        let process = site.process;
        let wire = &mut self.wires[client][master];
        wire.link += 1;
        let restarted = wire.process != process;
        wire.process = process;
        (wire.failures, wire.strikes, wire.last_strike) = (0, 0, now);
        (wire.last_arrival, wire.last_answer) = (now, now);
        self.trace.tell(now, || {
            format!(
                "c{client} connects to m{}{}",
                master + 1,
                if restarted { ", which restarted" } else { "" }
            )
        });
        self.join(client, master);
        if restarted {
            self.sights.saw(Sight::ToldOfRestart);
            self.book.on_restart(client, master);
        }
        Some((watcher, restarted))
    }

    /// Admission, as the real transport asks for it on a connection that is up.
    pub(crate) fn join(&mut self, client: usize, master: usize) {
        let (now, quarantine) = (self.now, self.plan.policy.quarantine());
        let joined = self.sites[master].join(quarantine, now);
        self.trace.tell(now, || format!("m{} to c{client}: {joined:?}", master + 1));
        let wire = &mut self.wires[client][master];
        match joined {
            Joined::Admitted => {
                if matches!(wire.gate, Gate::DeletesOnly) {
                    self.sights.saw(Sight::Admitted);
                }
                wire.gate = Gate::Open;
            }
            Joined::Wait(left) => {
                wire.gate = Gate::DeletesOnly;
                let link = wire.link;
                self.at(now + nanos(left) + MS, Event::Note(client, Note::QuarantineOver(master, link)));
            }
        }
    }

    /// Masters without counters take those of enough others, if the client sees these and they vote.
    pub(crate) fn recover_counters(&mut self, client: usize, quorum: Quorum) {
        let seen = |master: &usize| {
            let (site, wire) = (&self.sites[*master], &self.wires[client][*master]);
            site.up && !site.frozen && site.process == wire.process && matches!(wire.gate, Gate::Open)
        };
        let seen: Vec<usize> = (0..self.sites.len()).filter(seen).collect();
        let (counting, lost): (Vec<usize>, Vec<usize>) =
            seen.into_iter().partition(|master| self.sites[*master].counts);
        if lost.is_empty() {
            return;
        }
        let others = counting.iter().map(|master| self.sites[*master].keys().counters().clone());
        let others: Vec<Counters> = others.collect();
        let Some(counters) = fencing::recover(quorum, others) else { return };
        for master in lost {
            self.sites[master].recover(&counters);
            self.sights.saw(Sight::CountersRecovered);
        }
    }

    /// A fault of a master or a route.
    pub(crate) fn strike(&mut self, fault: Fault) {
        let now = self.now;
        match fault {
            Fault::Route { client, master, there, back, lasts } => {
                self.sights.saw(Sight::SlowRoute);
                let route = &mut self.wires[client][master].route;
                (route.there, route.back, route.until) = (there, back, now + lasts);
            }
            Fault::Block { client, master, there, lasts } => {
                self.sights.saw(Sight::Blocked);
                let route = &mut self.wires[client][master].route;
                let blocked = if there { &mut route.there_blocked } else { &mut route.back_blocked };
                *blocked = now + lasts;
            }
            Fault::Freeze { master, lasts } => {
                self.sights.saw(Sight::Frozen);
                self.sites[master].frozen = true;
                self.at(now + lasts, Event::Thaw(master));
            }
            Fault::Save { master } => self.sites[master].save(),
            Fault::Crash { master, kept, down } => {
                if self.sites[master].up {
                    self.crash(master, kept);
                    self.at(now + down, Event::MasterUp(master));
                }
            }
            Fault::Delete { master } => {
                self.sights.saw(Sight::DeletedByHand);
                for key in self.sites[master].delete_all(now) {
                    self.tell_of_change(master, &key);
                }
            }
            Fault::Step { master, by } => self.sites[master].step(by),
            Fault::Cut { .. } | Fault::Pause { .. } | Fault::Suspend { .. } | Fault::Stall { .. } => {}
        }
    }

    pub(crate) fn thaw(&mut self, master: usize) {
        self.sites[master].frozen = false;
        for id in std::mem::take(&mut self.sites[master].waiting) {
            self.arrive(id);
        }
    }

    fn crash(&mut self, master: usize, kept: Kept) {
        let now = self.now;
        self.sights.saw(match kept {
            Kept::Everything => Sight::RestartedWithData,
            Kept::Nothing => Sight::RestartedEmpty,
            Kept::OldSnapshot => Sight::RestartedOld,
        });
        self.sites[master].crash(kept);
        self.thaw(master);
        if kept == Kept::OldSnapshot {
            let holders: Vec<Bytes> = self.keys_of(master).into_iter().map(|(holder, _)| holder).collect();
            self.book.on_resurrected(master, &holders);
        }
        for client in 0..self.wires.len() {
            let link = self.wires[client][master].link;
            let at = now + self.dice.below(20 * MS);
            self.at(at, Event::Note(client, Note::Cut(master, link)));
        }
    }

    /// Who has keys on a master, and until when.
    pub(crate) fn keys_of(&mut self, master: usize) -> Vec<(Bytes, u64)> {
        let now = self.now;
        let site = &mut self.sites[master];
        let shown = site.now(now);
        let resources = site.keys().keys(shown);
        resources.into_iter().filter_map(|resource| site.look(&resource, now)).collect()
    }

    /// When enough masters will have forgotten whoever holds the resource; nothing if they do already.
    pub(crate) fn free_at(&mut self, resource: &[u8]) -> Option<u64> {
        let now = self.now;
        let mut held: Vec<u64> =
            self.sites.iter_mut().filter_map(|site| Some(site.look(resource, now)?.1)).collect();
        held.sort_unstable();
        let spare = self.sites.len() - self.plan.min_votes.unwrap_or(self.sites.len() / 2 + 1);
        held.len().checked_sub(spare + 1).map(|nth| held[nth])
    }

    /// All faults end; some masters stay away for good, but w do not.
    pub(crate) fn calm_down(&mut self) {
        let (now, gone) = (self.now, self.plan.gone);
        self.calm = true;
        for wire in self.wires.iter_mut().flatten() {
            wire.route.until = now;
            wire.route.there_blocked = wire.route.there_blocked.min(now);
            wire.route.back_blocked = wire.route.back_blocked.min(now);
        }
        for master in 0..self.sites.len() {
            self.thaw(master);
            if master < gone {
                if self.sites[master].up {
                    self.crash(master, Kept::Everything);
                }
            } else {
                self.sites[master].up = true;
            }
        }
    }

    /// No key may stay longer than it was set for.
    pub(crate) fn check_expiries(&mut self) {
        let now = self.now;
        let longest = self.plan.ttl + self.plan.drift(self.plan.ttl);
        for master in 0..self.sites.len() {
            for (holder, until) in self.keys_of(master) {
                self.book.check_expiry(&holder, master, until, longest, now);
            }
        }
    }

    /// All locks were given back, and the network let every delete through: no key may stay.
    pub(crate) fn check_ghosts(&mut self) {
        let now = self.now;
        if !self.plan.looks_for_ghosts() {
            return;
        }
        self.sights.saw(Sight::GhostsLookedFor);
        for master in 0..self.sites.len() {
            if !self.sites[master].up {
                continue;
            }
            for (holder, until) in self.keys_of(master) {
                self.book.check_key(&holder, master, until, now);
            }
        }
    }
}
