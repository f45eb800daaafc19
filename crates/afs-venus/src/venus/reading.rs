//! Reading of open files.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::api::HandleId;
use crate::counters::count;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Handle;
use crate::venus::Venus;

impl Venus {
    /// Reads up to `len` bytes; fewer only at the end of the file. All of them are of one version.
    pub async fn read(&self, handle: HandleId, pos: u64, len: usize) -> Result<Bytes> {
        let handle = self.files.handle(handle, "read")?;
        if !handle.flags.read && !handle.flags.write {
            return Err(VenusError::new(ErrorKind::BadHandle, "read"));
        }
        self.as_user(handle.user).read_held(&handle, pos, len).await
    }

    async fn read_held(&self, handle: &Arc<Handle>, pos: u64, len: usize) -> Result<Bytes> {
        loop {
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
            self.note_position(handle, pos, end);
            if here {
                count(&self.counters.data_hits);
                if let Some(bytes) = data.file.read_now(pos, (end - pos) as usize) {
                    return Ok(bytes);
                }
                let file = data.file.clone();
                return self.files.disk(move || file.read_at(pos, (end - pos) as usize)).await;
            }
            self.fetch_range(handle, pos..end).await?;
        }
    }

    /// Detects sequential readers and starts read-ahead.
    fn note_position(&self, handle: &Arc<Handle>, pos: u64, end: u64) {
        let data = handle.data();
        let expected = data.next_read.swap(end, Ordering::Relaxed);
        let large = data.content().length > self.limits.chunk_bytes;
        if large && (pos == expected || pos == 0) {
            self.read_ahead(handle, end.saturating_sub(1));
        }
    }
}
