//! Chance that a seed repeats.

/// SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// From `least` to `most`, both included.
    pub(crate) const fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    /// Some of `0..of`, in any order.
    pub(crate) fn some(&mut self, number: usize, of: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..of).collect();
        for left in (1..all.len()).rev() {
            let other = self.between(0, left as u64) as usize;
            all.swap(left, other);
        }
        all.truncate(number);
        all
    }
}
