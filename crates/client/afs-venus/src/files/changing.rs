//! Changes of data and lengths, in the cache alone.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::data::{Content, FileData};
use crate::error::Result;
use crate::files::Files;

impl Files {
    /// Writes bytes, extending the file. The end must not exceed the largest position.
    pub async fn write(&self, data: &Arc<FileData>, pos: u64, bytes: Bytes) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let range = pos..pos + bytes.len() as u64;
        self.await_fetches(data, &range).await;
        let _change = data.change_lock.begin_change().await;
        let with_kernel = data.content().uses.passthrough() > 0;
        let _guard = if with_kernel { Some(data.kernel_writes.lock().await) } else { None };
        // Recorded before the write, so that no fetch overwrites the bytes, and again after it, so that a store in
        // between does not count them as stored.
        let before = data.content().clone();
        data.content().wrote(range.clone(), self.time());
        data.forget_mark();
        let file = data.file.clone();
        let written = self.disk_moving(bytes.len() as u64, move || file.write_at(pos, &bytes)).await;
        match written {
            Ok(()) => data.content().wrote(range, self.time()),
            Err(_) => undo_write(data, &range, &before),
        }
        written
    }

    /// Waits for fetches of the range, which would overwrite what is written now.
    async fn await_fetches(&self, data: &FileData, range: &Range<u64>) {
        loop {
            let changed = data.changed.notified();
            if data.content().fetching.parts(range.clone()).is_empty() {
                return;
            }
            changed.await;
        }
    }

    /// Truncates or extends the file, after stores that block changes of the length.
    pub async fn cut(&self, data: &Arc<FileData>, length: u64) -> Result<()> {
        self.await_fetches(data, &(length..u64::MAX)).await;
        let _change = data.change_lock.begin_cut().await;
        let _guard = data.kernel_writes.lock().await;
        // A passthrough writer may have written beyond the length known here.
        let is_so_long = {
            let content = data.content();
            content.length == length && content.uses.passthrough() == 0
        };
        if !is_so_long {
            data.forget_mark();
            let file = data.file.clone();
            self.disk(move || file.set_len(length)).await?;
        }
        let now = self.time();
        data.content().set_length(length, now);
        Ok(())
    }

    /// Extends the file to at least this length.
    pub async fn extend_to(&self, data: &Arc<FileData>, length: u64) -> Result<()> {
        if data.content().length >= length {
            return Ok(());
        }
        self.await_fetches(data, &(length..u64::MAX)).await;
        let _change = data.change_lock.begin_cut().await;
        let _guard = data.kernel_writes.lock().await;
        data.forget_mark();
        let file = data.file.clone();
        let length = self
            .disk(move || {
                let length = file.len()?.max(length);
                file.set_len(length)?;
                Ok(length)
            })
            .await?;
        let now = self.time();
        data.content().set_length(length, now);
        Ok(())
    }

    /// Makes a range a hole, up to the end of the file.
    pub async fn zero(&self, data: &Arc<FileData>, range: Range<u64>) -> Result<()> {
        self.await_fetches(data, &range).await;
        let _change = data.change_lock.begin_change().await;
        let _guard = data.kernel_writes.lock().await;
        let range = range.start..range.end.min(data.content().length);
        if range.is_empty() {
            return Ok(());
        }
        // As for a write, recorded before and after.
        let before = data.content().clone();
        data.content().zeroed(range.clone(), self.time());
        data.forget_mark();
        let (file, pos, len) = (data.file.clone(), range.start, range.end - range.start);
        let done = self.disk(move || file.zero(pos, len)).await;
        match done {
            Ok(()) => data.content().zeroed(range, self.time()),
            Err(_) => {
                data.content().remove_hole(range.clone());
                undo_write(data, &range, &before);
            }
        }
        done
    }
}

/// Undoes the record of a failed write: bytes that were not cached before are not cached now.
fn undo_write(data: &FileData, range: &Range<u64>, before: &Content) {
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
