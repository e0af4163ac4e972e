//! All that a seed decides before the run begins: the fleet, its clocks and routes, and the faults.

use std::time::Duration;

use quorlock::protocol::policy::Policy;

use crate::dice::Dice;
use crate::site::Kept;
use crate::time::{MS, Rate, S, Stall, US};

/// What happens to the fleet.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Commands of a client take so long to a master, their answers so long back.
    Route {
        client: usize,
        master: usize,
        there: u64,
        back: u64,
        lasts: u64,
    },
    /// Nothing arrives any more in one direction; the sender keeps it until then.
    Block {
        client: usize,
        master: usize,
        there: bool,
        lasts: u64,
    },
    Cut {
        client: usize,
        master: usize,
    },
    Freeze {
        master: usize,
        lasts: u64,
    },
    Save {
        master: usize,
    },
    Crash {
        master: usize,
        kept: Kept,
        down: u64,
    },
    /// The client's tasks get no turn.
    Pause {
        client: usize,
        lasts: u64,
    },
    /// Nor do its timers count.
    Suspend {
        client: usize,
        lasts: u64,
    },
    Stall {
        client: usize,
        stall: Stall,
    },
    /// Somebody deletes all keys by hand.
    Delete {
        master: usize,
    },
    /// A wall clock is set forward.
    Step {
        master: usize,
        by: u64,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) machines: Vec<Rate>,
    pub(crate) masters: Vec<Rate>,
    pub(crate) users: usize,
    pub(crate) resources: usize,
    pub(crate) min_votes: Option<usize>,
    pub(crate) policy: Policy,
    pub(crate) ttl: u64,
    pub(crate) timeout: u64,
    pub(crate) drift_ppm: u64,
    /// The usual way to a master, at most.
    pub(crate) near: u64,
    /// How many commands may be under way on one connection.
    pub(crate) window: usize,
    /// One in so many commands is refused for lack of room; never if zero.
    pub(crate) overload: u64,
    /// What a broken connection had already received may be read after the next one is up.
    pub(crate) reads_late: bool,
    /// One in so many commands of a broken connection is executed late.
    pub(crate) late: u64,
    /// The latest that happens; short where a key that stays would be noticed.
    pub(crate) latest: u64,
    /// Until when there are faults and work.
    pub(crate) work: u64,
    pub(crate) faults: Vec<(u64, Fault)>,
    /// Masters that never come back, so that w are left.
    pub(crate) gone: usize,
    /// A machine stalls once in so many commands sent or confirmed; never if zero.
    pub(crate) stalls: u64,
    /// A connection breaks once in so many commands that create a key, while that is on its way; never if zero.
    pub(crate) cuts: u64,
    /// Whether masters tell of changes to those who wait.
    pub(crate) tells: bool,
    /// A client that is closed while its users are at work, and when.
    pub(crate) closes: Option<(usize, u64)>,
    /// Whether the faults include those that the promise excludes.
    pub(crate) outside: bool,
}

impl Plan {
    pub(crate) fn new(seed: u64, outside: bool) -> Self {
        let mut dice = Dice::new(seed);
        let masters = if dice.one_in(4) { 3 } else { 5 };
        let needed = if masters == 5 && dice.one_in(4) { 4 } else { masters / 2 + 1 };
        let (timeout, ttl) = dice.pick(&[
            (40, 300),
            (50, 1_000),
            (100, 1_000),
            (100, 1_000),
            (100, 3_000),
            (500, 3_000),
            (60, 20_000),
            (60, 20_000),
        ]);
        let drift_ppm = dice.pick(&[10_000, 10_000, 1_000, 50_000, 100_000]);
        let max_ttl = ttl + dice.pick(&[0, 0, ttl / 2]);
        let policy = Policy::new()
            .with_master_timeout(Duration::from_millis(timeout))
            .with_max_ttl(Duration::from_millis(max_ttl))
            .with_drift_ppm(drift_ppm)
            .with_backoff(
                Duration::from_millis(dice.between(5, 25)),
                Duration::from_millis(dice.between(80, 400)),
            );
        let (clients, users) = dice.pick(&[(2, 1), (2, 2), (3, 1), (3, 1), (4, 1)]);
        let (ttl, timeout) = (ttl * MS, timeout * MS);
        // A far master is sent more at once, so that nothing waits for a round trip.
        let (near, window) =
            dice.pick(&[(200 * US, 1), (200 * US, 4), (2 * MS, 4), (8 * MS, 32), (timeout / 3, 32)]);
        let mut plan = Self {
            seed,
            machines: Vec::new(),
            masters: Vec::new(),
            users,
            resources: dice.pick(&[1, 1, 2]),
            min_votes: (needed == 4).then_some(4),
            policy,
            ttl,
            timeout,
            drift_ppm: u64::from(drift_ppm),
            near,
            window,
            overload: dice.pick(&[0, 0, 0, 25]),
            reads_late: dice.one_in(4),
            late: dice.pick(&[2, 2, 3]),
            latest: if ttl > 10 * S { 800 * MS } else { 2 * ttl },
            work: (6 * ttl).clamp(3 * S, 40 * S),
            faults: Vec::new(),
            gone: if dice.one_in(3) {
                usize::try_from(dice.between(1, (masters - needed) as u64)).expect("few")
            } else {
                0
            },
            stalls: dice.pick(&[0, 0, 25, 80]),
            cuts: dice.pick(&[0, 30, 100]),
            tells: true,
            closes: None,
            outside,
        };
        plan.set_clocks(masters, clients, u64::from(drift_ppm), &mut dice);
        plan.choose_faults(masters, clients, 2 * needed - masters - 1, &mut dice);
        plan.tells = !dice.one_in(4);
        // The first one is needed to the end, and one alone has nobody to give way to.
        plan.closes = (clients > 2 && dice.one_in(3)).then(|| (clients - 1, dice.below(plan.work)));
        plan
    }

    /// Keys live so long that one which stays is noticed.
    pub(crate) fn looks_for_ghosts(&self) -> bool {
        self.latest < self.ttl
    }

    /// Clients may be slow and masters fast, together by what the drift allows; one master is the victim.
    fn set_clocks(&mut self, masters: usize, clients: usize, allowance: u64, dice: &mut Dice) {
        let split = dice.pick(&[0, 10, 50, 100]);
        let (slow, fast) = (allowance * split / 100, allowance * (100 - split) / 100);
        let signed = |ppm: u64| i64::try_from(ppm * 98 / 100).expect("small");
        let victim = dice.index(masters);
        for master in 0..masters {
            let ppm = if master == victim || dice.one_in(3) {
                signed(fast)
            } else {
                signed(dice.below(fast + 1)) - signed(fast / 2)
            };
            self.masters.push(Rate { offset: dice.between(1, 1_000) * S + dice.below(S), ppm });
        }
        for _ in 0..clients {
            let ppm = if dice.one_in(2) { -signed(slow) } else { signed(dice.below(10_000)) };
            self.machines.push(Rate { offset: dice.between(1, 1_000) * S + dice.below(S), ppm });
        }
    }

    /// How long a machine does nothing, in milliseconds.
    pub(crate) fn stall(&self, dice: &mut Dice) -> u64 {
        // Just less than a ttl is longer than an old deadline, and shorter than one that a renewal brings.
        let less = self.ttl * 5 / 6;
        dice.pick(&[MS, self.timeout, self.ttl / 3, less, less, self.ttl]) / MS + dice.below(3)
    }

    /// A delay at which something is decided, more or less.
    fn delay(&self, dice: &mut Dice) -> u64 {
        let validity = self.ttl - self.drift(self.ttl);
        let around = dice.pick(&[
            0,
            0,
            self.timeout,
            self.timeout,
            validity,
            self.ttl,
            self.ttl / 3,
            self.timeout / 2,
        ]);
        (around + dice.between(0, 2) * MS + dice.below(MS)).saturating_sub(3 * MS / 2)
    }

    /// ⌈factor · ttl⌉ + 2 ms, as the design has it.
    pub(crate) fn drift(&self, ttl: u64) -> u64 {
        ((ttl / MS * self.drift_ppm).div_ceil(1_000_000) + 2) * MS
    }

    /// All masters restart empty within a while, and a client is away meanwhile.
    fn lose_power(&mut self, at: u64, client: usize, dice: &mut Dice) {
        self.faults.push((at, Fault::Pause { client, lasts: self.ttl * 5 / 6 }));
        for master in 0..self.masters.len() {
            let crash = Fault::Crash { master, kept: Kept::Nothing, down: dice.between(MS, self.ttl / 16) };
            self.faults.push((at + dice.below(self.ttl / 16), crash));
        }
    }

    fn choose_faults(&mut self, masters: usize, clients: usize, forgetful: usize, dice: &mut Dice) {
        let pace = dice.pick(&[0, self.ttl / 24, self.ttl / 12, self.ttl / 12, self.ttl / 6, self.ttl / 2]);
        if pace == 0 {
            (self.stalls, self.cuts, self.overload) = (0, 0, 0);
            return;
        }
        // Each restart takes a vote away for more than a ttl.
        let lives = dice.pick(&[self.ttl / 2, 2 * self.ttl, 4 * self.ttl]);
        let mut lives_until = 0;
        let mut at = 0;
        loop {
            at += dice.between(pace / 4, 2 * pace);
            if at >= self.work {
                return;
            }
            let (client, master) = (dice.index(clients), dice.index(masters));
            let lasts = dice.pick(&[
                self.timeout / 2,
                self.timeout,
                3 * self.timeout,
                self.ttl / 3,
                self.ttl * 5 / 6,
                self.ttl,
            ]);
            let lasts = lasts + dice.below(5 * MS);
            let fault = match dice.below(100) {
                0..28 => {
                    Fault::Route { client, master, there: self.delay(dice), back: self.delay(dice), lasts }
                }
                28..36 => {
                    let lasts = if dice.one_in(3) { 3 * self.ttl } else { lasts };
                    Fault::Block { client, master, there: dice.one_in(2), lasts }
                }
                36..50 => Fault::Cut { client, master },
                50..56 => {
                    // Also longer than a key lives, with commands in its buffers.
                    let longer = if dice.one_in(3) { self.ttl / 4 } else { 0 };
                    Fault::Freeze { master, lasts: lasts + longer }
                }
                56..62 => Fault::Save { master },
                62..70 if at >= lives_until => {
                    lives_until = at + lives;
                    let kept =
                        dice.pick(&[Kept::Everything, Kept::Nothing, Kept::Nothing, Kept::OldSnapshot]);
                    if dice.one_in(3) {
                        self.lose_power(at, client, dice);
                        continue;
                    }
                    Fault::Crash { master, kept, down: dice.between(MS, 400 * MS) }
                }
                70..75 => Fault::Pause { client, lasts },
                75..79 => Fault::Suspend { client, lasts },
                79..89 if self.stalls > 0 => {
                    Fault::Stall { client, stall: Stall { reads: dice.below(30), millis: self.stall(dice) } }
                }
                89..96 if self.outside => Fault::Delete { master },
                89..96 if forgetful > 0 => Fault::Delete { master: dice.index(forgetful) },
                96..100 if self.outside => Fault::Step { master, by: self.ttl },
                _ => continue,
            };
            self.faults.push((at, fault));
        }
    }
}
