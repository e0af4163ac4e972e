//! Random numbers that a seed repeats (SplitMix64).

#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to `end` − 1.
    pub(super) const fn below(&mut self, end: usize) -> usize {
        (self.roll() % end as u64) as usize
    }

    pub(super) const fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}
