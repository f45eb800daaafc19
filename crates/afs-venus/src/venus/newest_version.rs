//! Showing the newest version to one who has locked a file that is open.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::Status;

use crate::data::FileData;
use crate::error::Result;
use crate::files::Handle;
use crate::venus::Venus;

impl Venus {
    /// Lets a handle go on with the newest version: the one at the server if it `was_unlocked` (others may have changed it
    /// until now), else the one that is used here.
    pub(super) async fn switch_to_newest(&self, handle: &Arc<Handle>, was_unlocked: bool) -> Result<()> {
        let vnode = &handle.vnode;
        let volume = self.volume_of(vnode.key).await?;
        if vnode.state().file.is_orphan() || !volume.is_writable() {
            return Ok(());
        }
        let status = match was_unlocked {
            // Asked even if we hold a promise: a server that could not reach us could not break it.
            true => self.fetch_status(vnode, &volume).await?,
            false => self.status_without_check(vnode).await?,
        };
        let data = handle.data();
        if data.content().version == status.data_version && is_whole(&data) {
            return Ok(());
        }
        let is_shared = {
            let content = data.content();
            content.uses.writers() > 0 || content.is_dirty() || data.backed.load(Ordering::SeqCst)
        };
        match is_shared {
            true => self.replace_version(handle, &data, &status).await?,
            false => drop(self.files.switch_to_current(handle, &status).await?),
        }
        if self.kernel.invalidate_data(vnode.key) {
            self.kernel.settled().await;
        }
        Ok(())
    }

    /// Puts another version in place of the one in a cache file, for all who have it open. What is unsaved stays on top.
    /// A kernel that reads and writes the file by itself finds all of it there afterwards.
    async fn replace_version(
        &self,
        handle: &Arc<Handle>,
        data: &Arc<FileData>,
        status: &Status,
    ) -> Result<()> {
        self.files.note_kernel_writes_in(data).await?;
        self.files.take_version(data, status).await?;
        if !data.backed.load(Ordering::SeqCst) {
            return Ok(());
        }
        let length = data.content().length;
        self.fetch_range(handle, 0..length).await?;
        self.files.mark_whole(data).await
    }
}

/// Whether a kernel that has the file finds all of its version there: an earlier attempt to bring it may have failed half-way.
fn is_whole(data: &FileData) -> bool {
    !data.backed.load(Ordering::SeqCst) || data.content().is_complete()
}
