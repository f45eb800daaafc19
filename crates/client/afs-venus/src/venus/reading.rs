//! Reading of open files.

use afs_rpc::boxed;
use std::sync::Arc;

use bytes::Bytes;

use crate::api::HandleId;
use crate::counters::count;
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Handle;
use crate::venus::Venus;
use crate::venus::fetch::VERSIONS_MAX;

impl Venus {
    /// Reads up to `len` bytes; fewer only at the end of the file. All of them are of one version.
    #[boxed]
    pub async fn read(&self, handle: HandleId, pos: u64, len: usize) -> Result<Bytes> {
        let handle = self.files.handle(handle, "read")?;
        if !handle.flags.read && !handle.flags.write {
            return Err(VenusError::new(ErrorKind::BadHandle, "read"));
        }
        self.files.note_request(&handle);
        self.as_user(handle.user).read_held(&handle, pos, len).await
    }

    async fn read_held(&self, handle: &Arc<Handle>, pos: u64, len: usize) -> Result<Bytes> {
        self.note_run(handle, pos, len);
        let mut versions = 0;
        while versions < VERSIONS_MAX {
            self.files.go_on(handle, || self.drop_pages(handle.vnode.key))?;
            let data = handle.data();
            let _pin = data.pin(pos..pos.saturating_add(len as u64));
            let (end, here) = {
                let content = data.content();
                let end = content.length.min(pos.saturating_add(len as u64));
                (end, content.present.contains(&(pos..end.max(pos))))
            };
            if pos >= end {
                return Ok(Bytes::new());
            }
            self.note_position(handle, pos, &data, here);
            if here {
                count(&self.counters.data_hits);
                if let Some(bytes) = data.file.read_now(pos, (end - pos) as usize) {
                    return Ok(bytes);
                }
                let file = data.file.clone();
                return self.files.disk(move || file.read_at(pos, (end - pos) as usize)).await;
            }
            if !self.bypasses(handle, &data) {
                let fetched = self.fetch_range(handle, pos..end).await;
                self.unless_past_the_cache(handle, &data, fetched)?;
                continue;
            }
            match self.read_past(handle, &data, pos..end).await? {
                Some(bytes) => return Ok(bytes),
                None => versions += 1,
            }
        }
        Err(VenusError::new(ErrorKind::Stale, "FetchData").of(handle.vnode.key.fid))
    }

    /// Takes note of what is read of a file that may be long.
    fn note_run(&self, handle: &Handle, pos: u64, len: usize) {
        let end = handle.data().content().length.min(pos.saturating_add(len as u64));
        handle.run.note(pos..end.max(pos), self.limits.chunk_bytes);
    }

    /// Starts read-ahead for a sequential reader of a file that may be long. Of what is not here, the reader will fetch a part itself.
    fn note_position(&self, handle: &Arc<Handle>, pos: u64, data: &FileData, is_here: bool) {
        let is_large = data.content().length > self.limits.chunk_bytes;
        let is_sequential = pos == 0 || handle.run.is_sequential();
        let is_ahead_good = is_large && is_sequential && !self.bypasses(handle, data);
        handle.ahead.note(is_ahead_good.then_some(pos));
        // What is read first is fetched first, and what is ahead of it from then on.
        if is_ahead_good && !self.is_cold_start(handle, data, pos) {
            self.read_ahead(handle, u32::from(!is_here));
        }
    }
}
