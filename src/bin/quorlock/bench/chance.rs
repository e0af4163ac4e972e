//! Chance that costs nothing next to what is measured. No lock rests on it.

use std::cell::Cell;
use std::fmt::Write as _;

/// SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

thread_local! {
    static IDS: Cell<Option<u64>> = const { Cell::new(None) };
}

impl Chance {
    pub(crate) fn new() -> Self {
        Self(uuid::Uuid::new_v4().as_u64_pair().0)
    }

    pub(crate) const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.draw() % (limit.max(1) as u64)).unwrap_or(0)
    }

    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last + 1));
        }
    }

    /// A value to sign keys with, without asking the operating system.
    pub(crate) fn id() -> String {
        IDS.with(|ids| {
            let mut chance = ids.get().map_or_else(Self::new, Self);
            let mut id = String::with_capacity(32);
            let _ = write!(id, "{:016x}{:016x}", chance.draw(), chance.draw());
            ids.set(Some(chance.0));
            id
        })
    }
}
