//! A capability that was given: for how long it is used, and when another one is asked for.

use afs_datapath::capability::{Capability, Secret};
use afs_rpc::Instant;

/// A capability as the file server gave it.
#[derive(Clone)]
pub(crate) struct Given {
    /// Number of the capability among those of its table, which gives it.
    pub number: u64,
    pub capability: Capability,
    pub secret: Secret,
    /// When the call for it began. From then on its lifetime counts here, so that it ends here before it ends at the drive.
    pub asked: Instant,
    pub ends: Instant,
}

impl Given {
    /// Whether it is time for another: the last quarter of its life has begun.
    pub fn is_due(&self, now: Instant) -> bool {
        let life = self.ends.saturating_since(self.asked);
        self.ends.saturating_since(now) < life / 4
    }

    /// Whether it is worth asking for another where that costs no call: the second half of its life has begun.
    pub fn is_half_over(&self, now: Instant) -> bool {
        let life = self.ends.saturating_since(self.asked);
        self.ends.saturating_since(now) < life / 2
    }
}
