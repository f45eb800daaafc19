//! Fast hasher keyed by the endpoint's seed: the same seed gives the same table, and an attacker who chooses
//! connection ids cannot choose collisions.

use std::hash::{BuildHasher, Hasher};

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Builds [`FoldHasher`]s from one secret.
#[derive(Clone, Copy)]
pub(crate) struct HashSeed(pub(crate) u64);

impl BuildHasher for HashSeed {
    type Hasher = FoldHasher;
    fn build_hasher(&self) -> FoldHasher {
        FoldHasher { state: self.0, secret: self.0.rotate_left(32) | 1 }
    }
}

/// Folds a 128-bit product after every word.
pub(crate) struct FoldHasher {
    state: u64,
    secret: u64,
}

impl FoldHasher {
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.state ^ word ^ self.secret) * u128::from(MULTIPLIER ^ self.secret << 1);
        self.state = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for FoldHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, value: u8) {
        self.mix(u64::from(value));
    }
    fn write_u16(&mut self, value: u16) {
        self.mix(u64::from(value));
    }
    fn write_u32(&mut self, value: u32) {
        self.mix(u64::from(value));
    }
    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }
    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }
    fn finish(&self) -> u64 {
        self.state
    }
}
