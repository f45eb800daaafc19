//! SplitMix64 (Steele, Lea, Flood 2014): pseudo-random numbers that follow from a seed.

/// The generator's state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitMix(u64);

impl SplitMix {
    /// A generator; the same seed gives the same numbers.
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_decide() {
        assert_eq!(SplitMix::of(1).next(), SplitMix::of(1).next());
        assert_ne!(SplitMix::of(1).next(), SplitMix::of(2).next());
    }
}
