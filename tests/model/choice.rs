//! Which steps are open in a world, less those that cannot matter.

use quorlock::protocol::attempt::Stage;
use quorlock::protocol::quorum::MasterId;
use quorlock::protocol::time::Moment;

use super::row::{Habit, LATEST, REACH, Row, TICK};
use super::step::Step;
use super::world::{Life, MOST, World};

impl World {
    /// All open steps. `each` is the likeness of each master: of several alike only the first need move.
    pub(crate) fn choices(&self, row: &Row, each: &[u128; MOST], out: &mut Vec<Step>) {
        out.clear();
        let unborn = row.attempts - self.lives.len();
        let able = unborn + self.lives.iter().filter(|life| life.may_hold()).count();
        if able < row.fewest || row.fenced && !self.may_win_after_another(unborn) {
            return;
        }
        if unborn > 0 {
            out.push(Step::Start);
        }
        for life in 0..self.lives.len() {
            self.choices_of(row, life, able > row.fewest || row.fewest == 0, out);
        }
        for master in (0..row.masters).filter(|master| !each[..*master].contains(&each[*master])) {
            for life in 0..self.lives.len() {
                self.choices_between(row, life, master, out);
            }
            self.choices_at(row, master, out);
        }
        let far_too_late = |due: Moment| self.moment() >= due.plus(LATEST);
        let waits = self.lives.iter().any(|life| life.machine.next_time().is_some_and(far_too_late));
        if !row.timeless && !waits && (row.late || self.pause().is_some()) {
            out.push(Step::Tick);
        }
    }

    /// Whether a token may yet be won beside another: nothing else is to be seen of fenced claims. Those that fail only
    /// leave counters higher, and the searches begin with counters of all kinds.
    fn may_win_after_another(&self, unborn: usize) -> bool {
        let asking = self.lives.iter().filter(|life| life.machine.stage() == Stage::Claiming).count();
        asking + unborn > 0 && asking + unborn + self.tokens().count() > 1
    }

    /// What an attempt's user and driver may do. `may_end`: whether there is anything to see after it ends.
    fn choices_of(&self, row: &Row, nth: usize, may_end: bool, out: &mut Vec<Step>) {
        let life = &self.lives[nth];
        if life.clockless {
            out.push(Step::ReadClock(nth));
            return;
        }
        if row.late && life.machine.next_time().is_some_and(|due| due <= self.moment()) {
            out.push(Step::Wake(nth));
        }
        if life.is_valid(self.now) && self.budget.extensions > 0 {
            out.push(Step::Extend(nth, false));
            out.extend(row.short.map(|_| Step::Extend(nth, true)));
        }
        if may_end && life.can_release() {
            out.push(Step::Release(nth));
        }
        if may_end && life.machine.stage() == Stage::Claiming {
            out.push(Step::Abandon(nth));
        }
    }

    /// What may happen between an attempt and a master.
    fn choices_between(&self, row: &Row, life: usize, master: usize, out: &mut Vec<Step>) {
        let wire = &self.lives[life].wires[master];
        let leads = wire.up && wire.run == self.masters[master].run;
        let in_any_order = row.has(Habit::Overtakes);
        let most = if in_any_order { usize::MAX } else { 1 };
        let flights = || wire.flights.iter().enumerate();
        if leads {
            let unexecuted = flights().filter(|(_, flight)| flight.vote.is_none()).take(most);
            out.extend(unexecuted.map(|(nth, _)| Step::Execute(life, master, nth)));
        }
        if !self.lives[life].clockless {
            let executed = flights().take(most).filter(|(_, flight)| flight.vote.is_some());
            out.extend(executed.map(|(nth, _)| Step::Hear(life, master, nth)));
        }
        let first = wire.flights.front();
        if first.is_some_and(|first| first.vote.is_none() && first.dispatch.act.creates()) && leads {
            out.extend((self.budget.repeats > 0).then_some(Step::Repeat(life, master)));
        }
        if self.budget.silences > 0 && flights().any(|(_, flight)| !flight.given_up) {
            out.push(Step::GiveUp(life, master));
        }
        if wire.up && (!leads || self.budget.breaks > 0 && first.is_some()) {
            out.push(Step::Break(life, master));
        }
        if !wire.up {
            out.push(Step::Connect(life, master));
        }
        out.extend((0..wire.ghosts.len()).map(|nth| Step::Haunt(life, master, nth)));
    }

    /// What may happen to a master. One that has no key has nothing to forget but its counter.
    fn choices_at(&self, row: &Row, nth: usize, out: &mut Vec<Step>) {
        let master = &self.masters[nth];
        if row.fenced {
            self.choices_of_counter(row, nth, out);
        }
        let soon = |end: u64| end - self.now <= row.haste() && !row.timeless;
        if let Some(key) = master.key {
            out.extend((self.budget.crashes > 0).then_some(Step::Restart(nth, false)));
            out.extend((self.budget.restarts > 0).then_some(Step::Restart(nth, true)));
            out.extend((self.budget.forgets > 0).then_some(Step::Forget(nth)));
            let over = row.timeless && self.lives[key.holder as usize].is_over();
            out.extend((over || soon(key.expires)).then_some(Step::Expire(nth)));
        }
        let asks = |life: &Life| life.machine.stage() == Stage::Claiming;
        let unasked = || !self.lives[..master.begun].iter().any(|life| asks(life));
        if master.quarantine > 0 && (soon(master.quarantine) || row.timeless && unasked()) {
            out.push(Step::Readmit(nth));
        }
    }

    fn choices_of_counter(&self, row: &Row, nth: usize, out: &mut Vec<Step>) {
        let master = &self.masters[nth];
        if master.key.is_none() && master.counter > 0 {
            out.extend((self.budget.crashes > 0).then_some(Step::Restart(nth, false)));
        }
        if master.uncounted && (master.quarantine == 0 || row.has(Habit::ReadsInQuarantine)) {
            let news = self.greatest_of_others(row, nth);
            out.extend((news.is_some() && news != master.told).then_some(Step::ReadCounters(nth)));
        }
        if master.told.is_some() && master.quarantine == 0 {
            out.push(Step::Recover(nth));
        }
        out.extend((self.budget.bumps > 0).then_some(Step::Bump(nth)));
        if self.budget.replays > 0 {
            let executed = |life: &Life| life.machine.backing().contains(MasterId::new(nth).expect("few"));
            let replayed = (0..self.lives.len()).filter(|life| executed(&self.lives[*life]));
            out.extend(replayed.map(|life| Step::Replay(life, nth)));
        }
    }

    /// How long time passes in one step; `None` if no moment makes a difference any more.
    pub(crate) fn pause(&self) -> Option<u64> {
        let masters = self.masters.iter();
        let ends = masters.flat_map(|master| {
            [master.key.map_or(0, |key| key.expires), master.quarantine].into_iter().filter(|end| *end > 0)
        });
        let lives = self.lives.iter();
        let dues = lives.clone().filter_map(|life| Some(life.machine.next_time()?.as_nanos()));
        let wires = lives.flat_map(|life| &life.wires);
        let limits = wires.flat_map(|wire| wire.ghosts.iter().filter_map(|(_, limit)| *limit));
        let next = ends.chain(dues).chain(limits).min()?;
        let reach = REACH.as_nanos() as u64;
        let ahead = next.saturating_sub(self.now + reach) / TICK * TICK;
        Some(ahead.max(TICK))
    }
}
