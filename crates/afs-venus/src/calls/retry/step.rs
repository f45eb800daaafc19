//! A step of the ladder, and the bounds of all of them.

use std::time::Duration;

use afs_wire::error::AbortCode;

use crate::error::ErrorKind;

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Call this address of this site.
    Try {
        /// Index of the site.
        site: usize,
        /// Index of the address within the site.
        address: usize,
    },
    /// Wait, then ask [`super::Ladder::resumed`].
    Pause(Duration),
    /// Ask the location service again, then [`super::Ladder::relocated`].
    Relocate,
    /// Nobody answers: wait, at most so long, until one of the servers does, then ask [`super::Ladder::returned`]. If none of them is
    /// worth waiting for, or the time is over, [`super::Ladder::abandoned`].
    AwaitServer(Duration),
    /// The abort is the call's own answer.
    Reply(AbortCode),
    /// Give up.
    Fail(ErrorKind),
}

/// The bounds the ladder keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryLimits {
    /// No pause begins that would end later than this after the start.
    pub total: Duration,
    /// The same for volumes that the servers call off line or unknown though the location service says they are there.
    pub offline: Duration,
    /// Length of the first pause; each further one is twice as long.
    pub pause: Duration,
    /// Length of the longest.
    pub pause_max: Duration,
}

impl RetryLimits {
    /// The length of the pause after so many others.
    pub(super) fn pause_after(&self, pauses: u32) -> Duration {
        self.pause.saturating_mul(1 << pauses.min(16)).min(self.pause_max)
    }
}
