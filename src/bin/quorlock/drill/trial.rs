//! One kind of work, and what came of it.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use quorlock::FencingToken;
use quorlock::fence::Gate;

use super::register::Register;
use crate::args::Drill;

/// What the names of its locks begin with.
pub(super) const PREFIX: &str = "quorlock-drill:";

/// The lengths of work, in hundredths of the ttl.
const WORKS: [u32; 3] = [80, 100, 150];
/// How often somebody at work writes.
const STROKES: u32 = 50;
/// Above all delays of a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Trial {
    pub(super) percent: u32,
    pub(super) watchdog: bool,
    pub(super) frozen: bool,
    pub(super) resource: String,
    pub(super) ttl: Duration,
    pub(super) work: Duration,
    /// Longer than all others together can take.
    pub(super) wait: Duration,
    pub(super) rounds: u32,
    unfenced: RefCell<Register>,
    fenced: Gate<Register>,
    entries: Cell<usize>,
    refused: Cell<usize>,
    stopped: Cell<usize>,
    missed: RefCell<Vec<String>>,
}

impl Trial {
    pub(super) fn all(args: &Drill, frozen: bool) -> Vec<Self> {
        let kinds = WORKS.iter().flat_map(|percent| [(*percent, true), (*percent, false)]);
        kinds.map(|(percent, watchdog)| Self::new(args, percent, watchdog, frozen)).collect()
    }

    fn new(args: &Drill, percent: u32, watchdog: bool, frozen: bool) -> Self {
        let work = args.ttl * percent / 100;
        let habit = if watchdog { "renewed" } else { "left" };
        Self {
            percent,
            watchdog,
            frozen,
            resource: format!("{PREFIX}{}:{percent}:{habit}", std::process::id()),
            ttl: args.ttl,
            work,
            wait: (work + args.ttl) * u32::from(args.contenders) * args.rounds + PATIENCE,
            rounds: args.rounds,
            unfenced: RefCell::default(),
            fenced: Gate::new(Register::default()),
            entries: Cell::default(),
            refused: Cell::default(),
            stopped: Cell::default(),
            missed: RefCell::default(),
        }
    }

    pub(super) fn step(&self) -> Duration {
        self.work / STROKES
    }

    /// The number of a new entry.
    pub(super) fn enter(&self) -> usize {
        self.entries.replace(self.entries.get() + 1)
    }

    /// Writes into both registers; that with a gate may refuse.
    pub(super) fn stroke(&self, entry: usize, token: FencingToken) {
        self.unfenced.borrow_mut().stroke(entry);
        if self.fenced.enter(token, |register| register.stroke(entry)).is_err() {
            self.refused.set(self.refused.get() + 1);
        }
    }

    /// Somebody was told that the lock is over, and wrote no more.
    pub(super) fn stop(&self) {
        self.stopped.set(self.stopped.get() + 1);
    }

    pub(super) fn miss(&self, why: String) {
        self.missed.borrow_mut().push(why);
    }

    pub(super) fn done(self) -> Done {
        Done {
            percent: self.percent,
            watchdog: self.watchdog,
            frozen: self.frozen,
            work: self.work,
            entries: self.entries.get(),
            double_unfenced: self.unfenced.borrow().double_entries(),
            double_fenced: self.fenced.into_inner().double_entries(),
            refused: self.refused.get(),
            stopped: self.stopped.get(),
            missed: self.missed.take(),
        }
    }
}

/// The same, counted.
pub(super) struct Done {
    pub(super) percent: u32,
    pub(super) watchdog: bool,
    pub(super) frozen: bool,
    pub(super) work: Duration,
    pub(super) entries: usize,
    pub(super) double_unfenced: usize,
    pub(super) double_fenced: usize,
    pub(super) refused: usize,
    pub(super) stopped: usize,
    pub(super) missed: Vec<String>,
}
