//! Writing, and changes of the length.

use afs_rpc::boxed;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::api::HandleId;
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::{DataUse, Handle};
use crate::venus::Venus;
use crate::venus::store_reason::StoreReason;
use crate::vnode::Vnode;

impl Venus {
    /// Writes all bytes to the cache. With `append` the position is the end of the file, whatever `pos` is.
    #[boxed]
    pub async fn write(&self, handle: HandleId, pos: u64, data: Bytes) -> Result<usize> {
        let handle = self.files.handle(handle, "write")?;
        if !handle.flags.write {
            return Err(VenusError::new(ErrorKind::BadHandle, "write"));
        }
        self.files.note_request(&handle);
        let (file, me) = (handle.data(), self.as_user(handle.user));
        if handle.flags.append {
            let _guard = file.appending.lock().await;
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

    /// Limits dirty data to half of the cache: beyond it the file is stored first.
    async fn keep_within_cache(
        &self,
        handle: &Handle,
        data: &Arc<FileData>,
        range: &Range<u64>,
    ) -> Result<()> {
        let bytes = range.end - range.start;
        let unsaved = data.content().dirty_bytes();
        if unsaved.saturating_add(bytes) > self.files.bytes_max() / 2 && unsaved > 0 {
            self.store(&handle.vnode, data, StoreReason::Midway).await?;
        }
        self.files.make_room(&handle.vnode, data, bytes, range).await;
        Ok(())
    }

    /// Sets the length: through a handle that may write locally, to be stored at close; otherwise at the server at
    /// once.
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
        let in_use = self.files.use_current(vnode, &status, self.context.user).await?;
        let data = in_use.data.clone();
        let stored = self.cut_at_server(vnode, in_use, length).await;
        if let Err(error) = &stored
            && error.kind == ErrorKind::Stale
        {
            // As after a retried store: other clients have stored since, or the file does not exist any more.
            self.give_up_data(vnode, error).await;
        }
        self.retire(vnode, &data, self.context.user).await;
        stored
    }

    /// Truncates a file here and at the server. Dirty data is stored first, as truncated bytes cannot be recovered: if
    /// either store fails, the truncation is undone (unless the data is shared with a handle), and no dirty byte is
    /// lost.
    async fn cut_at_server(&self, vnode: &Arc<Vnode>, in_use: DataUse<'_>, length: u64) -> Result<()> {
        let data = in_use.data.clone();
        // A writer meanwhile waits with its close for this lock.
        let _guard = vnode.changing.lock().await;
        self.store_before_cut(vnode, &data).await?;
        let stored = self.cut_and_store(vnode, &data, length).await;
        drop(in_use);
        if stored.is_err() {
            self.files.discard(vnode, &data);
        }
        stored
    }

    /// Stores dirty data. If that fails, the file stays listed for the same user with the same number of failures.
    async fn store_before_cut(&self, vnode: &Arc<Vnode>, data: &Arc<FileData>) -> Result<()> {
        self.files.note_kernel_writes_to_store(vnode, data).await?;
        let (listed_for, failures) = (self.files.retry_user(vnode.key), data.content().failures);
        let stored = match failures {
            0 => self.store_noted(vnode, data, StoreReason::Midway).await,
            _ => self.retry_noted(vnode, data, StoreReason::Midway).await,
        };
        if stored.is_err() {
            data.content().failures = failures;
            if let Some(user) = listed_for {
                self.files.keep_retry_user(vnode.key, user);
            }
        }
        stored
    }

    async fn cut_and_store(&self, vnode: &Arc<Vnode>, data: &Arc<FileData>, length: u64) -> Result<()> {
        self.files.prepare_change(vnode.key, data).await?;
        self.files.cut(data, length).await?;
        self.store_locked(vnode, data, StoreReason::Midway).await
    }
}
