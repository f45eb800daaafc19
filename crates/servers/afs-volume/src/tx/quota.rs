//! Quota and space. Source: `docs/protocol/fileserver.md` "11. Quota and space".

use super::VolumeTx;
use crate::error::VolumeError;

/// KiB by which a store may exceed the quota, because its data is already in flight.
pub(super) const STORE_SPARE: u64 = 1024;

impl VolumeTx<'_, '_> {
    /// Charges a new object, if the partition and both quotas, of bytes and of files, permit it. Objects take space beside
    /// the index, wherever their data go.
    pub(super) fn charge_object(&mut self, blocks: u64) -> Result<(), VolumeError> {
        self.require_room()?;
        if blocks > self.store.drives.own().usage()?.free / 1024 {
            return Err(VolumeError::DiskFull);
        }
        let files = u64::from(self.header.max_files);
        if files != 0 && self.header.file_count >= files {
            return Err(VolumeError::OverQuota);
        }
        self.charge(blocks, 0)
    }

    /// Charges `growth` KiB, if the quota permits all but `spare` of them. The drive has checked the
    /// partition's space when it took the data.
    pub(super) fn charge(&mut self, growth: u64, spare: u64) -> Result<(), VolumeError> {
        let wanted = growth.saturating_sub(spare);
        let quota = u64::from(self.header.max_quota);
        if growth > 0 {
            self.require_room()?;
        }
        if growth > 0 && quota != 0 && self.header.blocks_used + wanted > quota {
            return Err(VolumeError::OverQuota);
        }
        self.charge_anyway(growth);
        Ok(())
    }

    /// What room the index keeps for itself on a full disk is for changes that free some.
    fn require_room(&self) -> Result<(), VolumeError> {
        if self.store.kv.is_short() { Err(VolumeError::DiskFull) } else { Ok(()) }
    }

    /// Charges an amount that is never refused.
    pub(super) fn charge_anyway(&mut self, growth: u64) {
        self.header_changed = true;
        self.header.blocks_used += growth;
    }

    /// Credits KiB.
    pub(super) fn credit(&mut self, blocks: u64) {
        self.header_changed = true;
        self.header.blocks_used = self.header.blocks_used.saturating_sub(blocks);
    }
}
