//! Chance that a seed repeats.

use crate::splitmix;

#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        splitmix::next(&mut self.0)
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
