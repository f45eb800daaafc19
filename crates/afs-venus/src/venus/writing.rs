//! Writing, and changing lengths.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::api::HandleId;
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::venus::handles::Handle;
use crate::venus::occasion::Occasion;
use crate::venus::{BRIEF_BYTES_MAX, Venus};
use crate::vnode::Vnode;

impl Venus {
    /// Writes all of it, to the cache. With `append` the position is the end, whatever `pos` says.
    pub async fn write(&self, handle: HandleId, pos: u64, data: Bytes) -> Result<usize> {
        let handle = self.handles.get(handle, "write")?;
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
        let range = pos..end;
        self.keep_within_cache(handle, data, &range).await?;
        self.await_fetches(data, &range).await;
        let _change = data.gate.enter().await;
        let with_kernel = data.content().direct > 0;
        let _turn = if with_kernel { Some(data.absorbing.lock().await) } else { None };
        // Noted before the bytes are there, so that no fetch overwrites them, and again afterwards, so that a store which
        // ran in between does not count them as stored.
        let before = data.content().clone();
        data.content().wrote(range.clone(), self.wall());
        data.forget_mark();
        let file = data.file.clone();
        let write = move || file.write_at(pos, &bytes);
        let written = match len as u64 <= BRIEF_BYTES_MAX {
            true => self.disk_briefly(write).await,
            false => self.disk(write).await,
        };
        match written {
            Ok(()) => {
                data.content().wrote(range, self.wall());
                Ok(len)
            }
            Err(error) => {
                self.unwrite(data, &range, &before);
                Err(error)
            }
        }
    }

    /// A write failed: bytes that were not here before are not here now.
    pub(super) fn unwrite(&self, data: &FileData, range: &Range<u64>, before: &crate::data::Content) {
        let mut content = data.content();
        for gap in before.present.gaps(range.clone()) {
            content.present.remove(gap.clone());
            content.dirty.remove(gap);
        }
        if before.length < range.end && content.length == range.end {
            content.length = before.length;
            let end = content.length;
            content.dirty.remove(end..u64::MAX);
        }
    }

    /// Bytes on their way from the server must not arrive on top of what is written now.
    pub(super) async fn await_fetches(&self, data: &FileData, range: &Range<u64>) {
        loop {
            let changed = data.changed.notified();
            if data.content().fetching.parts(range.clone()).is_empty() {
                return;
            }
            changed.await;
        }
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
        if unsaved.saturating_add(bytes) > self.cache.bytes_max() / 2 && unsaved > 0 {
            self.store(&handle.vnode, data, Occasion::Midway).await?;
        }
        self.make_room(data, bytes, range).await;
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
        let open = handle.and_then(|id| self.handles.get(id, "truncate").ok());
        if let Some(open) = open.filter(|open| open.flags.write) {
            return self.cut(&open.data(), length).await;
        }
        let status = self.status(vnode).await?;
        if status.kind != afs_wire::fs::FileKind::File {
            return Err(VenusError::new(ErrorKind::IsDirectory, "truncate").of(vnode.key.fid));
        }
        self.require_write(vnode).await?;
        let data = self.current_data(vnode, &status).await?;
        self.will_change(vnode).await?;
        self.cut(&data, length).await?;
        let stored = self.store(vnode, &data, Occasion::Midway).await;
        if stored.is_err() && data.handles.load(Ordering::SeqCst) == 0 {
            // truncate(2) has failed: nothing of it stays.
            vnode.state().data = None;
        } else {
            self.put_away(vnode, &data).await;
        }
        stored
    }

    /// Cuts or grows the data here, when a store of it that somebody waits for is over.
    pub(super) async fn cut(&self, data: &Arc<FileData>, length: u64) -> Result<()> {
        self.await_fetches(data, &(length..u64::MAX)).await;
        let _change = data.gate.cut().await;
        let _turn = data.absorbing.lock().await;
        // A kernel that has the file may have written beyond the length that is known here.
        let is_so_long = {
            let content = data.content();
            content.length == length && content.direct == 0
        };
        if !is_so_long {
            data.forget_mark();
            let file = data.file.clone();
            self.disk(move || file.set_len(length)).await?;
        }
        let now = self.wall();
        data.content().set_length(length, now);
        Ok(())
    }
}
