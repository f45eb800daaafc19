//! Time in rxgk's units.

use afs_rpc::UnixTime;

const TICKS_PER_SECOND: i64 = 10_000_000;

/// Units of 100 ns since 1970-01-01 00:00:00 UTC. Zero means never where an expiry is meant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RxgkTime(pub i64);

impl RxgkTime {
    /// The expiry of a token without one.
    pub const NEVER: Self = Self(0);

    /// True when this is an expiry that has passed.
    #[must_use]
    pub fn has_passed(self, now: UnixTime) -> bool {
        self != Self::NEVER && self <= Self::from(now)
    }

    /// The expiry as a time; `None` is never. Times before 1970 become 1970.
    #[must_use]
    pub fn expiry(self) -> Option<UnixTime> {
        (self != Self::NEVER).then(|| {
            let ticks = self.0.max(0).cast_unsigned();
            let per_second = TICKS_PER_SECOND.cast_unsigned();
            UnixTime { secs: ticks / per_second, nanos: (ticks % per_second) as u32 * 100 }
        })
    }
}

impl From<UnixTime> for RxgkTime {
    /// Saturates 29 000 years from now.
    fn from(time: UnixTime) -> Self {
        let secs = i64::try_from(time.secs).unwrap_or(i64::MAX);
        Self(secs.saturating_mul(TICKS_PER_SECOND).saturating_add(i64::from(time.nanos / 100)))
    }
}
