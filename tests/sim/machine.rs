//! One client's machine: a runtime of its own with timers of its own, so that it can be paused, suspended and stalled
//! as a whole, the client's own tasks included.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use quorlock::client::clock::Clock;
use quorlock::client::entropy::Entropy;
use quorlock::{Hold, Redlock};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::time::{advance, sleep_until};

use crate::sights::Sight;
use crate::time::{MachineClock, Rate};
use crate::transport::Wires;
use crate::world::{Event, Note, World, locked};

/// Why the machine has no turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    Paused,
    Suspended,
    Stalled,
}

pub(crate) struct Machine {
    pub(crate) client: usize,
    pub(crate) runtime: Runtime,
    pub(crate) clock: Arc<MachineClock>,
    pub(crate) redlock: Option<Redlock>,
    world: Arc<Mutex<World>>,
    sent: Arc<Notify>,
    pub(crate) out: Option<Out>,
    /// What it will take note of when it has its turn again.
    pub(crate) inbox: Vec<Note>,
    /// Something happened that a task may be waiting for.
    pub(crate) roused: bool,
    /// The tick that its timers have reached.
    reached: u64,
}

impl Machine {
    /// Its timers tick at `base` past each millisecond.
    pub(crate) fn new(client: usize, base: u64, rate: Rate, world: &Arc<Mutex<World>>) -> Self {
        let runtime =
            Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let clock = Arc::new(MachineClock::new(runtime.handle().clone(), base, rate));
        let sent = Arc::new(Notify::new());
        let (plan, masters) = {
            let world = locked(world);
            (world.plan.clone(), world.sites.len())
        };
        let wires = Wires {
            client,
            names: (1..=masters).map(|nth| format!("m{nth}")).collect(),
            world: world.clone(),
            clock: clock.clone(),
            sent: sent.clone(),
            closed: AtomicBool::new(false),
        };
        let told = Clock::told_by({
            let (clock, world) = (Arc::downgrade(&clock), Arc::downgrade(world));
            move || {
                let clock = clock.upgrade().expect("the machine lives");
                clock.tell(|millis| {
                    if let Some(world) = world.upgrade() {
                        look_around(client, &clock, &world, millis);
                    }
                })
            }
        });
        let redlock = {
            let _inside = runtime.enter();
            let entropy = Entropy::seeded(plan.seed.wrapping_mul(31).wrapping_add(client as u64));
            Redlock::over(wires, plan.min_votes, plan.policy, told, entropy).expect("a good policy")
        };
        Self {
            client,
            runtime,
            clock,
            redlock: Some(redlock),
            world: world.clone(),
            sent,
            out: None,
            inbox: Vec::new(),
            roused: true,
            reached: 0,
        }
    }

    /// Whether it may have something to do before `real`.
    pub(crate) fn is_behind(&self, real: u64) -> bool {
        self.out.is_none() && (self.roused || self.clock.tick(real) > self.reached)
    }

    /// Has its turns until the last tick before `real`, or until it sends something.
    pub(crate) fn run_to(&mut self, real: u64) {
        self.roused = false;
        let until = self.clock.instant(self.clock.tick(real));
        let sent = self.sent.clone();
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = sent.notified() => {}
                () = sleep_until(until) => {}
            }
            // All that is ready has its turn.
            tokio::task::yield_now().await;
        });
        self.reached = self.clock.local();
        self.see_stall();
    }

    /// Time may have passed in the middle of something.
    pub(crate) fn see_stall(&mut self) {
        if self.clock.stalled() > 0 && self.out.is_none() {
            self.out = Some(Out::Stalled);
            locked(&self.world).at(self.clock.real(), Event::Resume(self.client));
        }
    }

    pub(crate) fn pause(&mut self, out: Out, until: u64) {
        if self.out.is_none() {
            self.out = Some(out);
            locked(&self.world).at(self.clock.next_tick(until), Event::Resume(self.client));
        }
    }

    /// Has its turn again at `real`, unless a stall lasts longer; what it has to take note of. Its timers learn of it
    /// when it [catches up](Self::catch_up).
    pub(crate) fn wake(&mut self, real: u64) -> Vec<Note> {
        match self.out {
            Some(Out::Stalled) if self.clock.real() <= real => self.clock.end_stall(),
            Some(Out::Paused) => self.clock.lag_by(self.clock.tick(real).saturating_sub(self.clock.local())),
            Some(Out::Suspended) => self.clock.slept(real.saturating_sub(self.clock.real())),
            Some(Out::Stalled) | None => return Vec::new(),
        }
        self.out = None;
        self.roused = true;
        std::mem::take(&mut self.inbox)
    }

    /// All timers that are due go off together.
    pub(crate) fn catch_up(&mut self) {
        if self.out.is_none() {
            self.runtime.block_on(advance(Duration::from_nanos(self.clock.take_lag())));
            self.reached = self.clock.local();
            self.see_stall();
        }
    }
}

/// The machine's clock was read, and then nothing happened for long; another thread looks at the holds meanwhile.
fn look_around(client: usize, clock: &MachineClock, world: &Mutex<World>, millis: u64) {
    let now = clock.real();
    let holds: Vec<(Bytes, Hold)> = {
        let mut world = locked(world);
        world.saw(Sight::Stalled);
        world.trace.tell(now, || format!("c{client} has done nothing for {millis} ms"));
        world.book.holds_of(client)
    };
    for (holder, hold) in holds {
        let valid = clock.unseen(|| hold.is_valid());
        let world = &mut *locked(world);
        if !valid {
            world.sights.saw(Sight::LostWhileStalled);
        }
        world.book.saw(&holder, valid, now, &mut world.sights);
    }
}
