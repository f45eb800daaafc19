//! lseek(2) and fallocate(2) on open files.

use afs_rpc::boxed;
use std::ops::Range;
use std::sync::Arc;

use afs_wire::fs;

use crate::api::{Allocate, HandleId, Seek};
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::venus::Venus;
use crate::vnode::Vnode;

/// Figure by which a server reports this much free space or more: the largest of the call (docs/protocol
/// fileserver.md).
const BLOCKS_MAX: u32 = i32::MAX as u32;

impl Venus {
    /// The first position from `from` that is in a hole, or in data; `None` if there is none before the end, or `from`
    /// is not before the end. Ranges that are not cached count as data. A caller that caches written pages must first
    /// flush them ([`Venus::is_written`]).
    #[boxed]
    pub async fn seek(&self, handle: HandleId, from: u64, wanted: Seek) -> Result<Option<u64>> {
        let data = self.files.handle(handle, "lseek")?.data();
        self.files.note_kernel_writes_in(&data).await?;
        let found = data.content().seek(from, wanted);
        Ok(found)
    }

    /// True if the file of a handle is open for writing, and written through Venus.
    pub fn is_written(&self, handle: HandleId) -> bool {
        let Ok(handle) = self.files.handle(handle, "lseek") else { return false };
        let data = handle.data();
        let content = data.content();
        content.uses.writers() > 0 && content.uses.passthrough() == 0
    }

    /// fallocate(2): changes a range of a file. The change is stored like a write.
    ///
    /// # Errors
    /// EINVAL for an empty range, EFBIG for one that ends beyond the largest position; EDQUOT and ENOSPC if the volume
    /// lacks the space for [`Allocate::Extend`] now.
    #[boxed]
    pub async fn allocate(&self, handle: HandleId, how: Allocate, pos: u64, len: u64) -> Result<()> {
        let handle = self.files.handle(handle, "fallocate")?;
        if !handle.flags.write {
            return Err(VenusError::new(ErrorKind::BadHandle, "fallocate"));
        }
        let refused = |kind| VenusError::new(kind, "fallocate").of(handle.vnode.key.fid);
        if len == 0 {
            return Err(refused(ErrorKind::Invalid));
        }
        let end = pos.checked_add(len).filter(|end| *end <= i64::MAX as u64);
        let range = pos..end.ok_or(refused(ErrorKind::TooBig))?;
        let (data, me) = (handle.data(), self.as_user(handle.user));
        me.files.note_kernel_writes_in(&data).await?;
        match how {
            Allocate::Extend => {
                me.require_room(&handle.vnode, &data, range.clone()).await?;
                me.files.extend_to(&data, range.end).await
            }
            Allocate::Zero { keep_length } => {
                if !keep_length {
                    me.files.extend_to(&data, range.end).await?;
                }
                me.files.zero(&data, range).await
            }
        }
    }

    /// An error if the volume lacks the space for a range now. If that is unknown, the store will report it.
    async fn require_room(&self, vnode: &Arc<Vnode>, data: &FileData, range: Range<u64>) -> Result<()> {
        let new: u64 = data.content().data().gaps(range).iter().map(|gap| gap.end - gap.start).sum();
        if new == 0 || vnode.state().file.is_orphan() {
            return Ok(());
        }
        let volume = self.volume_to_change(vnode.key).await?;
        let Ok(answered) = self.call(&volume, fs::GetVolumeStatus { volume: volume.id }).await else {
            return Ok(());
        };
        let status = answered.value.status;
        let kib = new.div_ceil(1024);
        let quota_left = u64::from(status.quota_max).saturating_sub(u64::from(status.blocks_used));
        let refused = |kind| Err(VenusError::new(kind, "fallocate").of(vnode.key.fid));
        if status.quota_max > 0 && kib > quota_left {
            return refused(ErrorKind::OverQuota);
        }
        let is_known = status.partition_blocks > 0 && status.partition_blocks_free < BLOCKS_MAX;
        if is_known && kib > u64::from(status.partition_blocks_free) {
            return refused(ErrorKind::NoSpace);
        }
        Ok(())
    }
}
