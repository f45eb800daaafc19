//! Times of files, which peers of AFS-3 know by whole seconds, and ours by nanoseconds.

use super::UnixSeconds;
use crate::xdr::{Decode, DecodeError, Encode, Reader};

const BILLION: u64 = 1_000_000_000;

/// A time of a file: nanoseconds since 1970-01-01 UTC, until the end of [`UnixSeconds`]. The structures of AFS-3 have the seconds, and
/// in words that it leaves unused the rest (`docs/protocol/extensions.md` "Times").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileTime(u64);

impl FileTime {
    /// A time of `nanos` nanoseconds, of which a second has less than 1 000 000 000, after a second.
    pub const fn new(seconds: UnixSeconds, nanos: u32) -> Self {
        let nanos = nanos as u64;
        Self(seconds.0 as u64 * BILLION + if nanos < BILLION { nanos } else { BILLION - 1 })
    }

    /// The time of so many nanoseconds since 1970; `None` beyond the last of [`UnixSeconds`].
    pub fn from_nanos(nanos: u64) -> Option<Self> {
        u32::try_from(nanos / BILLION).is_ok().then_some(Self(nanos))
    }

    /// Nanoseconds since 1970.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The second.
    pub const fn seconds(self) -> UnixSeconds {
        UnixSeconds((self.0 / BILLION) as u32)
    }

    /// Nanoseconds within the second.
    pub const fn nanos(self) -> u32 {
        (self.0 % BILLION) as u32
    }

    /// The beginning of the second: the time as peers of AFS-3 know it.
    pub const fn whole_seconds(self) -> Self {
        Self::new(self.seconds(), 0)
    }

    /// The time so many nanoseconds later, or the last one there is.
    pub const fn after(self, nanos: u64) -> Self {
        let last = Self::new(UnixSeconds(u32::MAX), u32::MAX);
        let after = self.0.saturating_add(nanos);
        if after > last.0 { last } else { Self(after) }
    }

    /// Whether this may be what a server tells that was given the other time: a server of AFS-3 keeps the second.
    pub fn may_be(self, given: Self) -> bool {
        self == given || self == given.whole_seconds()
    }
}

/// Nanoseconds since 1970, 64 bits: in calls of our own. Structures of AFS-3 have their own forms.
impl Encode for FileTime {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl Decode for FileTime {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let nanos = u64::decode(r)?;
        let beyond = DecodeError::BadValue { what: "time of a file", value: (nanos >> 32) as u32 };
        Self::from_nanos(nanos).ok_or(beyond)
    }
}

impl From<UnixSeconds> for FileTime {
    fn from(seconds: UnixSeconds) -> Self {
        Self::new(seconds, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_seconds_and_nanoseconds() {
        let time = FileTime::new(UnixSeconds(7), 30_000_000);
        assert_eq!(
            (time.seconds(), time.nanos(), time.as_nanos()),
            (UnixSeconds(7), 30_000_000, 7_030_000_000)
        );
        assert_eq!(FileTime::from_nanos(time.as_nanos()), Some(time));
        assert!(time.whole_seconds().may_be(time) && time.may_be(time) && !time.may_be(time.whole_seconds()));
        let last = FileTime::new(UnixSeconds(u32::MAX), u32::MAX);
        assert_eq!([time.after(1), last.after(1)], [FileTime::new(UnixSeconds(7), 30_000_001), last]);
        assert_eq!((last.seconds(), last.nanos()), (UnixSeconds(u32::MAX), 999_999_999));
        assert_eq!(FileTime::from_nanos(last.as_nanos() + 1), None);
    }
}
