//! A hash of 128 bits, so wide that two different worlds never meet in it by chance.

use std::hash::{BuildHasherDefault, Hasher};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mixer {
    left: u64,
    right: u64,
}

impl Mixer {
    pub(crate) fn whole(self) -> u128 {
        let (left, right) = (fold(self.left ^ ODD[2], ODD[0]), fold(self.right ^ ODD[0], ODD[3]));
        u128::from(left ^ right.rotate_left(32)) << 64 | u128::from(right.wrapping_add(left))
    }
}

const ODD: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93, 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut eight = [0; 8];
            eight[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(eight));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.left = fold(self.left ^ value ^ ODD[1], ODD[0]).wrapping_add(self.right);
        self.right = fold(self.right.rotate_left(29) ^ value, ODD[3]) ^ self.left.rotate_left(17);
    }

    fn write_u128(&mut self, value: u128) {
        self.write_u64(value as u64);
        self.write_u64((value >> 64) as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.whole() as u64
    }
}

/// For numbers that are hashes already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plain(u64);

impl Hasher for Plain {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only whole numbers are looked up");
    }

    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

pub(crate) type BuildPlain = BuildHasherDefault<Plain>;
