//! Limits on the use of a transport key, in time and bytes.

use std::time::Duration;

/// A token's limits on each key derived from it. Both are soft: a key is replaced when one is exceeded, as soon as
/// the peer can follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lifetime {
    /// Seconds; 0 is without limit.
    pub seconds: u32,
    /// Base-2 logarithm of bytes; 0 and 63 are without limit, more is a plain number of bytes, since makers of tokens
    /// disagree (`docs/protocol/rxgk.md` "4. Tokens").
    pub bytelife: u32,
}

impl Lifetime {
    /// Limits of tokens made here: ten hours, or a gigabyte.
    pub const USUAL: Self = Self { seconds: 36_000, bytelife: 30 };

    /// True when a key of this age, which has protected so many bytes, should be replaced.
    #[must_use]
    pub fn is_used_up(self, age: Duration, bytes: u64) -> bool {
        let too_old = self.seconds > 0 && age.as_secs() >= u64::from(self.seconds);
        too_old || bytes >= self.bytes_max()
    }

    /// Bytes a key may protect; `u64::MAX` is without limit.
    #[must_use]
    pub const fn bytes_max(self) -> u64 {
        match self.bytelife {
            0 | 63 => u64::MAX,
            power @ 1..63 => 1 << power,
            bytes => bytes as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytelife_in_every_reading() {
        let bytes = |bytelife| Lifetime { seconds: 0, bytelife }.bytes_max();
        assert_eq!([0, 63].map(bytes), [u64::MAX; 2]);
        assert_eq!([1, 30, 62, 64, u32::MAX].map(bytes), [2, 1 << 30, 1 << 62, 64, 0xffff_ffff]);
    }
}
