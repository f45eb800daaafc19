//! Writing, and changing lengths.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::api::HandleId;
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Handle;
use crate::venus::Venus;
use crate::venus::occasion::Occasion;
use crate::vnode::Vnode;

impl Venus {
    /// Writes all of it, to the cache. With `append` the position is the end, whatever `pos` says.
    pub async fn write(&self, handle: HandleId, pos: u64, data: Bytes) -> Result<usize> {
        let handle = self.files.handle(handle, "write")?;
        if !handle.flags.write {
            return Err(VenusError::new(ErrorKind::BadHandle, "write"));
        }
        let (file, me) = (handle.data(), self.speaking_for(handle.who));
        if handle.flags.append {
            let _turn = file.appending.lock().await;
            let end = file.content().length;
            return me.write_at(&handle, &file, end, data).await;
        }
        me.write_at(&handle, &file, pos, data).await
    }

    async fn write_at(&self, handle: &Handle, data: &Arc<FileData>, pos: u64, bytes: Bytes) -> Result<usize> {
        let len = bytes.len();
        let end = pos.checked_add(len as u64).filter(|end| *end <= i64::MAX as u64);
        let end = end.ok_or(VenusError::new(ErrorKind::TooBig, "write").of(handle.vnode.key.fid))?;
        self.keep_within_cache(handle, data, &(pos..end)).await?;
        self.files.write(data, pos, bytes).await?;
        Ok(len)
    }

    /// Unsaved data must not fill the cache: beyond half of it the writer stores before he goes on.
    async fn keep_within_cache(
        &self,
        handle: &Handle,
        data: &Arc<FileData>,
        range: &Range<u64>,
    ) -> Result<()> {
        let bytes = range.end - range.start;
        let unsaved = data.content().dirty_bytes();
        if unsaved.saturating_add(bytes) > self.files.bytes_max() / 2 && unsaved > 0 {
            self.store(&handle.vnode, data, Occasion::Midway).await?;
        }
        self.files.make_room(data, bytes, range).await;
        Ok(())
    }

    /// Sets a length: with a handle that may write, here only, to be stored at close; else at the server at once.
    pub(super) async fn set_length(
        &self,
        vnode: &Arc<Vnode>,
        handle: Option<HandleId>,
        length: u64,
    ) -> Result<()> {
        if length > i64::MAX as u64 {
            return Err(VenusError::new(ErrorKind::TooBig, "truncate").of(vnode.key.fid));
        }
        let open = handle.and_then(|id| self.files.handle(id, "truncate").ok());
        if let Some(open) = open.filter(|open| open.flags.write) {
            return self.files.cut(&open.data(), length).await;
        }
        let status = self.status(vnode).await?;
        if status.kind != afs_wire::fs::FileKind::File {
            return Err(VenusError::new(ErrorKind::IsDirectory, "truncate").of(vnode.key.fid));
        }
        self.require_write(vnode).await?;
        let in_use = self.files.use_current(vnode, &status, self.asker.who).await?;
        let data = in_use.data.clone();
        let stored = self.cut_and_store(vnode, &data, length).await;
        drop(in_use);
        if stored.is_err() {
            // truncate(2) has failed: nothing of it stays.
            self.files.discard(vnode, &data);
        }
        self.files.put_away(vnode, &data, self.asker.who).await;
        stored
    }

    async fn cut_and_store(&self, vnode: &Arc<Vnode>, data: &Arc<FileData>, length: u64) -> Result<()> {
        self.files.will_change(vnode.key, data).await?;
        self.files.cut(data, length).await?;
        self.store(vnode, data, Occasion::Midway).await
    }
}
