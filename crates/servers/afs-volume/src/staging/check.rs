//! Consistency check of a new state's directories.

use afs_wire::dir::{self, Blob, PAGE_LEN};
use afs_wire::ids::{Uniquifier, VnodeId};

use super::Restore;
use crate::error::VolumeError;
use crate::ids::SlotIndex;
use crate::location::Location;
use crate::record::VnodeRecord;
use crate::rows::{Rows, damaged};
use crate::tx::VolumeTx;

impl Restore {
    /// Reads every directory, one at a time, and looks up every entry.
    pub(super) async fn check_directories(&mut self) -> Result<(), VolumeError> {
        let mut after = VnodeId(0);
        let mut has_root = false;
        loop {
            let records = self.staged_after(after)?;
            let Some(last) = records.last() else { break };
            after = last.vnode;
            for record in records.iter().filter(|record| record.is_directory()) {
                has_root |= record.vnode == VnodeId::ROOT;
                let adopted = self.check_directory(record)?;
                self.adopt(record.vnode, record.unique, adopted).await?;
            }
        }
        if has_root { Ok(()) } else { Err(damaged(VnodeId::ROOT, "there is no root directory")) }
    }

    /// Returns the vnodes whose records do not yet name their directory.
    fn check_directory(&self, record: &VnodeRecord) -> Result<Vec<VnodeId>, VolumeError> {
        let location = Location::of(&self.staged);
        let snapshot = self.store().kv.snapshot();
        let mut bytes = Vec::new();
        for page in 0..record.length.div_ceil(PAGE_LEN as u64) {
            let row =
                snapshot.page_row(location.group, record.content, SlotIndex(page as u32), location.epoch)?;
            bytes.extend_from_slice(&row.ok_or_else(|| damaged(record.vnode, "a page of it is missing"))?);
        }
        let bad = |what: &str| damaged(record.vnode, what);
        let mut blob = Blob::from_bytes(bytes).map_err(|_| bad("its pages are not whole"))?;
        let summary = dir::check(&mut blob).map_err(|error| bad(&error.to_string()))?;
        if summary.this != (record.vnode, record.unique) {
            return Err(bad("its entry \".\" is another directory"));
        }
        let mut strangers = Vec::new();
        for entry in blob.entries(0).filter(|entry| entry.name != b"." && entry.name != b"..") {
            let named = snapshot.vnode_row(location.group, entry.vnode, location.epoch)?;
            let named = named.filter(|named| named.unique == entry.unique).ok_or_else(|| {
                let name = String::from_utf8_lossy(entry.name);
                bad(&format!(
                    "its entry {name:?} is vnode {} {}, which does not exist",
                    entry.vnode.0, entry.unique.0
                ))
            })?;
            if (named.parent, named.parent_unique) != (record.vnode, record.unique) {
                strangers.push(named.vnode);
            }
        }
        Ok(strangers)
    }

    /// Sets the parent of vnodes: the directory is authoritative.
    async fn adopt(
        &mut self,
        directory: VnodeId,
        unique: Uniquifier,
        vnodes: Vec<VnodeId>,
    ) -> Result<(), VolumeError> {
        for some in vnodes.chunks(VNODES_PER_STEP) {
            let some = some.to_vec();
            self.write(move |tx: &mut VolumeTx<'_, '_>| {
                some.iter().try_for_each(|vnode| tx.set_parent(*vnode, directory, unique))
            })
            .await?;
        }
        Ok(())
    }
}

const VNODES_PER_STEP: usize = 256;
