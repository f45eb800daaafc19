//! Replacement of the version in a cache file by another one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::Status;

use crate::data::FileData;
use crate::error::Result;
use crate::files::Files;

impl Files {
    /// Changes the version of the data: only dirty ranges stay cached. Bytes beyond the end are cut off the cache file,
    /// so that they do not reappear when the file grows.
    pub async fn take_version(&self, data: &Arc<FileData>, status: &Status) -> Result<()> {
        let _quiet = data.change_lock.block_changes().await;
        let _writes = data.kernel_writes.lock().await;
        let length = {
            let mut content = data.content();
            match content.is_dirty() {
                true => content.rebase(status.data_version, status.length),
                false => content.replace_version(status.data_version, status.length),
            }
            content.length
        };
        data.forget_mark();
        *data.stored_sums.lock() = Arc::default();
        let file = data.file.clone();
        self.disk(move || file.set_len(length)).await
    }

    /// Marks a cache file with passthrough after a version was fetched into it as a whole: later writes are the
    /// kernel's.
    pub async fn mark_whole(&self, data: &Arc<FileData>) -> Result<()> {
        let _writes = data.kernel_writes.lock().await;
        let file = data.file.clone();
        self.disk(move || file.mark()).await?;
        data.marked.store(true, Ordering::SeqCst);
        Ok(())
    }
}
