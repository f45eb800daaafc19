//! Holes of open files: looked for, and made.

use std::ops::Range;
use std::sync::Arc;

use afs_wire::fs;

use crate::api::{Allocate, HandleId, Seek};
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::venus::Venus;
use crate::vnode::Vnode;

impl Venus {
    /// The first position from `from` on that is in a hole, or is not; `None` if there is none before the end, or `from` is not
    /// before the end. What is not in the cache counts as data. Of what programs write through mappings, a caller that has
    /// its pages hands on what there is first ([`Venus::is_written`]).
    pub async fn seek(&self, handle: HandleId, from: u64, wanted: Seek) -> Result<Option<u64>> {
        let data = self.handles.get(handle, "lseek")?.data();
        self.absorb_data(&data).await?;
        let found = data.content().seek(from, wanted);
        Ok(found)
    }

    /// Whether somebody has what this handle reads open for writing, and writes it through Venus.
    pub fn is_written(&self, handle: HandleId) -> bool {
        let Ok(handle) = self.handles.get(handle, "lseek") else { return false };
        let data = handle.data();
        let content = data.content();
        content.writers > 0 && content.direct == 0
    }

    /// Changes a range of a file without bytes being written. The change travels with the next store, as a write does.
    ///
    /// # Errors
    /// EINVAL for a range of no bytes, EFBIG for one that ends beyond the largest position; EDQUOT and ENOSPC where the volume has
    /// at this moment no room for what [`Allocate::Reach`] is to have room for.
    pub async fn allocate(&self, handle: HandleId, how: Allocate, pos: u64, len: u64) -> Result<()> {
        let handle = self.handles.get(handle, "fallocate")?;
        if !handle.flags.write {
            return Err(VenusError::new(ErrorKind::BadHandle, "fallocate"));
        }
        let refused = |kind| VenusError::new(kind, "fallocate").of(handle.vnode.key.fid);
        if len == 0 {
            return Err(refused(ErrorKind::Invalid));
        }
        let end = pos.checked_add(len).filter(|end| *end <= i64::MAX as u64);
        let range = pos..end.ok_or(refused(ErrorKind::TooBig))?;
        let (data, me) = (handle.data(), self.speaking_for(handle.who));
        me.absorb_data(&data).await?;
        match how {
            Allocate::Reach => {
                me.require_room(&handle.vnode, &data, range.clone()).await?;
                me.reach(&data, range.end).await
            }
            Allocate::Zero { keep_length } => {
                if !keep_length {
                    me.reach(&data, range.end).await?;
                }
                me.zero(&data, range).await
            }
        }
    }

    /// The file is at least so long.
    async fn reach(&self, data: &Arc<FileData>, length: u64) -> Result<()> {
        if data.content().length >= length {
            return Ok(());
        }
        self.await_fetches(data, &(length..u64::MAX)).await;
        let _change = data.gate.cut().await;
        let _turn = data.absorbing.lock().await;
        data.forget_mark();
        let file = data.file.clone();
        let length = self
            .disk(move || {
                let length = file.len()?.max(length);
                file.set_len(length)?;
                Ok(length)
            })
            .await?;
        let now = self.wall();
        data.content().set_length(length, now);
        Ok(())
    }

    /// Makes a hole, as far as the file reaches.
    async fn zero(&self, data: &Arc<FileData>, range: Range<u64>) -> Result<()> {
        self.await_fetches(data, &range).await;
        let _change = data.gate.enter().await;
        let _turn = data.absorbing.lock().await;
        let range = range.start..range.end.min(data.content().length);
        if range.is_empty() {
            return Ok(());
        }
        // As with a write, noted before and afterwards.
        let before = data.content().clone();
        data.content().zeroed(range.clone(), self.wall());
        data.forget_mark();
        let (file, len) = (data.file.clone(), range.end - range.start);
        let done = self.disk(move || file.zero(range.start, len)).await;
        let range = range.start..range.start + len;
        match done {
            Ok(()) => data.content().zeroed(range, self.wall()),
            Err(error) => {
                data.content().unzero(range.clone());
                self.unwrite(data, &range, &before);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Refuses what the volume has no room for at this moment. Where that cannot be told, the store will tell.
    async fn require_room(&self, vnode: &Arc<Vnode>, data: &FileData, range: Range<u64>) -> Result<()> {
        let new: u64 = data.content().data().gaps(range).iter().map(|gap| gap.end - gap.start).sum();
        if new == 0 || vnode.state().orphan {
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
        if status.partition_blocks > 0 && kib > u64::from(status.partition_blocks_free) {
            return refused(ErrorKind::NoSpace);
        }
        Ok(())
    }
}
