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

    /// A number from 0 up to, not including, 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number of the exponential distribution with this mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_as_requested_and_seeds_decide() {
        let mean = |seed, of: fn(&mut SplitMix) -> f64| {
            let mut random = SplitMix::of(seed);
            (0..100_000).map(|_| of(&mut random)).sum::<f64>() / 1e5
        };
        assert!((mean(7, SplitMix::unit) - 0.5).abs() < 0.01);
        assert!((mean(7, |random| random.exponential(30.0)) - 30.0).abs() < 0.5);
        assert_eq!(SplitMix::of(1).next(), SplitMix::of(1).next());
        assert_ne!(SplitMix::of(1).next(), SplitMix::of(2).next());
    }
}
