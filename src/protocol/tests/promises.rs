//! What the storm checks at each step, and in the calm after it.

use std::time::Duration;

use super::scene::{MS, S};
use super::storm::{PATIENCE, Sight, Storm};
use super::world::{MASTERS, moment};
use crate::protocol::attempt::{Loss, Stage};
use crate::protocol::fencing::FencingToken;
use crate::protocol::quorum::MasterId;
use crate::protocol::verdict::Verdict;

impl Storm {
    pub(super) fn tell_time(&mut self) {
        self.world.time_out(self.patience);
        let now = self.world.now;
        for attempt in 0..self.world.actors.len() {
            let actor = &mut self.world.actors[attempt];
            actor.machine.on_time(moment(now));
            let next = actor.machine.next_time();
            assert!(next.is_none_or(|next| next > moment(now)), "busy: {next:?} at {now}: {actor:?}");
            let rounds = if actor.machine.has_raised() { 2 } else { 1 };
            let judged = actor.machine.verdict().is_some() || now < actor.began + PATIENCE * rounds;
            assert!(judged, "a claim without a verdict: {actor:?}");
            let done = actor.release_began.is_none_or(|began| now < began + PATIENCE);
            assert!(done || actor.machine.released().is_some(), "a release without an outcome: {actor:?}");
            self.world.pump(attempt);
        }
    }

    pub(super) fn check(&mut self) {
        let now = self.world.now;
        let mut holder = None;
        for attempt in 0..self.world.actors.len() {
            self.observe(attempt);
            let actor = &self.world.actors[attempt];
            if actor.is_valid(now) {
                assert!(!actor.passed, "a deadline that had passed rose: {actor:?}");
                assert_eq!(holder, None, "two hold: {actor:?}");
                holder = Some(attempt);
                let backs = |key: &super::master::Key| key.holder == attempt;
                let masters = self.world.masters.iter();
                let backing =
                    masters.filter(|m| now < m.quarantine || m.key(now).as_ref().is_some_and(backs));
                assert!(
                    backing.count() >= self.quorum.needed(),
                    "valid without w keys: {actor:?} {:?}",
                    self.world.masters
                );
            } else if actor.machine.stage() == Stage::Held {
                self.world.actors[attempt].passed = true;
            }
        }
        if holder.is_some() && holder != self.last_holder {
            if self.last_holder.is_some() {
                self.saw(Sight::HandedOn);
            }
            self.last_holder = holder;
        }
    }

    fn observe(&mut self, attempt: usize) {
        let actor = &mut self.world.actors[attempt];
        let stage = actor.machine.stage();
        if matches!(actor.seen, Stage::Failed | Stage::Lost(_) | Stage::Released) {
            assert!(!matches!(stage, Stage::Claiming | Stage::Held), "revived: {actor:?}");
        }
        actor.seen = stage;
        let news = actor.machine.take_news();
        let verdict = actor.machine.verdict().filter(|_| news.verdict);
        if verdict == Some(Verdict::Won)
            && let Some(token) = actor.machine.token().map(FencingToken::as_u64)
        {
            assert!(token > self.last_token, "{token} after {}: {actor:?}", self.last_token);
            self.last_token = token;
            let raised = actor.machine.has_raised();
            self.seen[if raised { Sight::TokenRaised } else { Sight::TokenAtOnce } as usize] += 1;
        }
        if verdict == Some(Verdict::Won) && stage == Stage::Held && !self.dice.one_in(4) {
            let period = self.ttl * MS * 3 / 10;
            actor.machine.watch_over(moment(self.world.now + period), Duration::from_nanos(period));
        }
        let sights = [
            (verdict == Some(Verdict::Won), Sight::Won),
            (verdict == Some(Verdict::Contended), Sight::Contended),
            (verdict == Some(Verdict::NoQuorum), Sight::NoQuorum),
            (verdict == Some(Verdict::TooLate), Sight::TooLate),
            (news.lost && stage == Stage::Lost(Loss::Expired), Sight::Expired),
            (news.lost && stage == Stage::Lost(Loss::Vanished), Sight::Vanished),
            (news.lost && stage == Stage::Lost(Loss::MaxHold), Sight::MaxHold),
            (news.renewed, Sight::Renewed),
            (news.recovered, Sight::Recovered),
            (news.healed, Sight::Healed),
            (news.released, Sight::Released),
        ];
        sights.iter().filter(|(seen, _)| *seen).for_each(|(_, sight)| self.saw(*sight));
    }

    pub(super) const fn saw(&mut self, sight: Sight) {
        self.seen[sight as usize] += 1;
    }

    /// Everybody goes home, all links come up, what is on its way arrives; then time passes.
    pub(super) fn end(&mut self) {
        let overloaded = std::mem::take(&mut self.world.overload) > 0;
        self.tell_time();
        for attempt in 0..self.world.actors.len() {
            let now = moment(self.world.now);
            self.release(attempt);
            self.world.actors[attempt].machine.abandon(now);
            self.world.pump(attempt);
        }
        for client in 0..self.world.wires.len() {
            for master in 0..MASTERS {
                if !self.world.wires[client][master].up {
                    self.connect(client, master);
                }
            }
        }
        self.drain();
        self.check_nothing_is_left(overloaded);
        let last = self.world.now + 2 * S + self.ttl * MS + MS;
        while self.world.now < last {
            let step = self.world.now + self.dice.roll() % (200 * MS);
            self.world.now = self.due().fold(step.min(last), u64::min).max(self.world.now);
            self.tell_time();
            let (client, master) = (self.dice.below(self.world.wires.len()), self.dice.below(MASTERS));
            if !self.world.wires[client][master].ghosts.is_empty() && self.dice.one_in(4) {
                self.haunt(client, master);
            }
            self.drain();
            self.check();
        }
        let left =
            self.world.masters.iter().find(|master| master.key(last).is_some_and(|key| !key.prolonged));
        assert!(left.is_none(), "a ghost: {left:?} {:?}", self.world);
        for actor in &self.world.actors {
            assert_eq!(actor.machine.next_time(), None, "not done: {actor:?}");
            assert!(actor.machine.strays().is_empty(), "not sure: {actor:?}");
        }
    }

    /// Only what rule 6 leaves for later: what came by a broken connection, and where a delete found no room and is
    /// to be tried again within a second.
    fn check_nothing_is_left(&self, overloaded: bool) {
        let soon = moment(self.world.now + S);
        for (nth, master) in self.world.masters.iter().enumerate() {
            let Some(key) = master.key(self.world.now) else { continue };
            let machine = &self.world.actors[key.holder].machine;
            let known = machine.strays().contains(MasterId::new(nth).unwrap());
            let again = overloaded && known && machine.next_time().is_some_and(|next| next <= soon);
            assert!(key.late || key.prolonged || again, "a key of nobody on m{}: {:?}", nth + 1, self.world);
        }
    }

    fn drain(&mut self) {
        let clients = self.world.wires.len();
        let mut moved = true;
        while moved {
            moved = false;
            for client in 0..clients {
                for master in 0..MASTERS {
                    moved |= self.world.execute(client, master) || self.world.hear(client, master);
                }
            }
        }
    }
}
