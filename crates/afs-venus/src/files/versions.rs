//! Another version in the place of the one in a cache file.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::Status;

use crate::data::FileData;
use crate::error::Result;
use crate::files::Files;

impl Files {
    /// The data is of another version from now on: nothing of it is here but what is unsaved. What lies behind the end in
    /// the cache file is none of it, and must not be met when the file grows.
    pub async fn take_version(&self, data: &Arc<FileData>, status: &Status) -> Result<()> {
        let _quiet = data.change_lock.block_changes().await;
        let _absorbing = data.kernel_writes.lock().await;
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

    /// All of a version has been brought into a file that a kernel has: what is written to it from now on is the kernel's.
    pub async fn mark_whole(&self, data: &Arc<FileData>) -> Result<()> {
        let _absorbing = data.kernel_writes.lock().await;
        let file = data.file.clone();
        self.disk(move || file.mark()).await?;
        data.marked.store(true, Ordering::SeqCst);
        Ok(())
    }
}
