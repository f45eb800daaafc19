//! Steps of the ladder, and their limits.

use std::time::Duration;

use afs_wire::error::AbortCode;

use crate::error::ErrorKind;

/// The next step of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Call this address.
    Try {
        /// Index of the site.
        site: usize,
        /// Index of the address within the site.
        address: usize,
    },
    /// Wait, then call [`super::Ladder::resumed`].
    Pause(Duration),
    /// Query the location service, then call [`super::Ladder::relocated`].
    Relocate,
    /// No site replies: wait at most this long until one does, then call [`super::Ladder::returned`]; if none is worth
    /// waiting for or the time is over, [`super::Ladder::abandoned`].
    AwaitServer(Duration),
    /// The abort is the reply to the call.
    Reply(AbortCode),
    /// Fail.
    Fail(ErrorKind),
}

/// Limits of the ladder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryLimits {
    /// No pause begins that would end later than this after the start.
    pub total: Duration,
    /// The same for volumes that their servers report as off line or unknown although the location service lists them.
    pub offline: Duration,
    /// Length of the first pause; each further one is twice as long.
    pub pause: Duration,
    /// Longest pause.
    pub pause_max: Duration,
}

impl RetryLimits {
    /// Length of the pause after a number of others.
    pub(super) fn pause_after(&self, pauses: u32) -> Duration {
        self.pause.saturating_mul(1 << pauses.min(16)).min(self.pause_max)
    }
}
