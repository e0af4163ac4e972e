//! How long each scenario takes, and which there are.

use std::time::Duration;

use super::blocks::Plan;

/// Every scenario by its name, and what it shows.
pub(crate) const PROFILES: &[(&str, &str)] = &[
    ("loopback", "one task, all rows side by side, and what a cycle costs"),
    ("tasks", "64 tasks at once"),
    ("distance", "round trips of 0.5 to 50 ms, five datacentres, jitter"),
    ("faults", "masters slow, frozen, dead, restarted empty; three dead"),
    ("timeline", "latency while two masters freeze and thaw"),
    ("rate", "arrivals at a fixed, rising rate"),
    ("handoff", "2, 8 and 32 contenders for one lock, in one process and in several"),
    ("renewal", "1,000 and 10,000 locks held and renewed, 64 extended at once"),
];

/// The length of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) quick: bool,
    /// Of all times, for tests.
    pub(crate) scale: f64,
}

impl Pace {
    /// So long in a full run, so long in a quick one, in seconds.
    pub(crate) fn time(&self, full: f64, quick: f64) -> Duration {
        Duration::from_secs_f64(if self.quick { quick } else { full } * self.scale)
    }

    pub(crate) const fn blocks(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// Slices of so many seconds, two a block.
    pub(crate) fn plan(&self, arms: usize, blocks: (usize, usize), slice: (f64, f64)) -> Plan {
        let blocks = self.blocks(blocks.0, blocks.1);
        let slices = u32::try_from(2 * arms * blocks).unwrap_or(u32::MAX);
        let time = self.time(slice.0, slice.1).saturating_mul(slices);
        let warm_up = if self.quick { 200 } else { 3_000 };
        Plan { time, blocks, cycles: None, warm_up: (f64::from(warm_up) * self.scale) as usize }
    }
}
