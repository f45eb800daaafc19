//! Disks without a machine, for tests of stores: a crash at any change leaves any image that a real disk might.
//!
//! A [`SimDisk`](crate::disk::SimDisk) belongs to a node of a world, and settles at its crash. A [`CrashDisk`] stands alone: a test
//! asks it for as many images of one instant as it likes, and can have it forget what a failed sync left.

mod disk;
mod file;
mod folder;
mod segments;

pub use disk::CrashDisk;
pub use folder::{CrashFile, CrashFolder};
pub use segments::CrashSegments;

/// A small pseudorandom generator.
#[derive(Clone)]
pub struct Rng(
    /// The state, at first the seed.
    pub u64,
);

impl Rng {
    /// Any 64-bit number.
    #[allow(clippy::should_implement_trait, reason = "it has no end, and needs no adapters")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// The seeds to try: as many as `ANDREW_SEEDS` says, for long runs, or the number given; from `ANDREW_FIRST_SEED` on, or 0.
#[must_use]
pub fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first: u64 = number("ANDREW_FIRST_SEED").unwrap_or(0);
    first..first.saturating_add(number("ANDREW_SEEDS").unwrap_or(usual))
}
