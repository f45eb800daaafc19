//! Point in monotonic time.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// A point in monotonic time, in nanoseconds from an arbitrary start.
///
/// Read only from [`Env::now`](crate::Env::now). A state machine never reads it: its driver passes an `Instant` in.
/// Times passed in must not decrease; a decrease is treated as "no time has passed".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

impl Instant {
    /// The start of time.
    pub const ZERO: Instant = Instant(0);
    /// Later than every real instant: the deadline of an unarmed timer.
    pub const FAR_FUTURE: Instant = Instant(u64::MAX);

    /// An instant `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to `self`, or zero when `earlier` is later.
    pub const fn saturating_since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// True unless this is [`Instant::FAR_FUTURE`].
    pub const fn is_set(self) -> bool {
        self.0 != u64::MAX
    }
}

/// Nanoseconds of `duration`, saturated to the range of an [`Instant`].
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add(nanos(duration)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_sub(nanos(duration)))
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        self.saturating_since(earlier)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_set() {
            true => write!(f, "t+{:?}", Duration::from_nanos(self.0)),
            false => write!(f, "never"),
        }
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Instant(5) - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(Instant(u64::MAX - 1) + Duration::from_secs(1), Instant::FAR_FUTURE);
        assert_eq!(Instant(3) - Instant(7), Duration::ZERO);
    }
}
