//! Changes of bytes and lengths, in the cache alone.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::data::{Content, FileData};
use crate::error::Result;
use crate::files::Files;

impl Files {
    /// Writes bytes, growing the file. The end must be no position beyond the largest one.
    pub async fn write(&self, data: &Arc<FileData>, pos: u64, bytes: Bytes) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let range = pos..pos + bytes.len() as u64;
        self.await_fetches(data, &range).await;
        let _change = data.change_lock.begin_change().await;
        let with_kernel = data.content().uses.passthrough() > 0;
        let _guard = if with_kernel { Some(data.kernel_writes.lock().await) } else { None };
        // Noted before the bytes are there, so that no fetch overwrites them, and again afterwards, so that a store which
        // ran in between does not count them as stored.
        let before = data.content().clone();
        data.content().wrote(range.clone(), self.wall());
        data.forget_mark();
        let file = data.file.clone();
        let written = self.disk_moving(bytes.len() as u64, move || file.write_at(pos, &bytes)).await;
        match written {
            Ok(()) => data.content().wrote(range, self.wall()),
            Err(_) => unwrite(data, &range, &before),
        }
        written
    }

    /// Bytes on their way from the server must not arrive on top of what is written now.
    async fn await_fetches(&self, data: &FileData, range: &Range<u64>) {
        loop {
            let changed = data.changed.notified();
            if data.content().fetching.parts(range.clone()).is_empty() {
                return;
            }
            changed.await;
        }
    }

    /// Cuts or grows the file, when a store of it that somebody waits for is over.
    pub async fn cut(&self, data: &Arc<FileData>, length: u64) -> Result<()> {
        self.await_fetches(data, &(length..u64::MAX)).await;
        let _change = data.change_lock.begin_cut().await;
        let _guard = data.kernel_writes.lock().await;
        // A kernel that has the file may have written beyond the length that is known here.
        let is_so_long = {
            let content = data.content();
            content.length == length && content.uses.passthrough() == 0
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

    /// The file is at least so long.
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
        let now = self.wall();
        data.content().set_length(length, now);
        Ok(())
    }

    /// Makes a hole, as far as the file reaches.
    pub async fn zero(&self, data: &Arc<FileData>, range: Range<u64>) -> Result<()> {
        self.await_fetches(data, &range).await;
        let _change = data.change_lock.begin_change().await;
        let _guard = data.kernel_writes.lock().await;
        let range = range.start..range.end.min(data.content().length);
        if range.is_empty() {
            return Ok(());
        }
        // As with a write, noted before and afterwards.
        let before = data.content().clone();
        data.content().zeroed(range.clone(), self.wall());
        data.forget_mark();
        let (file, pos, len) = (data.file.clone(), range.start, range.end - range.start);
        let done = self.disk(move || file.zero(pos, len)).await;
        match done {
            Ok(()) => data.content().zeroed(range, self.wall()),
            Err(_) => {
                data.content().unzero(range.clone());
                unwrite(data, &range, &before);
            }
        }
        done
    }
}

/// A write failed: bytes that were not here before are not here now.
fn unwrite(data: &FileData, range: &Range<u64>, before: &Content) {
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
