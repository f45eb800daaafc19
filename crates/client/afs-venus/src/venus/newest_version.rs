//! Newest version for a handle whose process has taken a lock.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::Status;

use crate::data::FileData;
use crate::error::Result;
use crate::files::Handle;
use crate::venus::Venus;

impl Venus {
    /// Switches a handle to the newest version: the one at the server if it `was_unlocked` (other clients may have
    /// changed it until now), otherwise the one in use here.
    pub(super) async fn switch_to_newest(&self, handle: &Arc<Handle>, was_unlocked: bool) -> Result<()> {
        let vnode = &handle.vnode;
        let volume = self.volume_of(vnode.key).await?;
        if vnode.state().file.is_orphan() || !volume.is_writable() {
            return Ok(());
        }
        let status = match was_unlocked {
            // Requested even if promised: a server that could not reach this client could not break the promise.
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
            false => drop(self.switch_to_current(handle, &status).await?),
        }
        if self.kernel.invalidate_data(vnode.key) {
            self.kernel.settled().await;
        }
        Ok(())
    }

    /// Replaces the version in a cache file for all of its handles. Dirty ranges are kept on top. For a kernel that
    /// uses the file by passthrough the whole version is fetched.
    async fn replace_version(
        &self,
        handle: &Arc<Handle>,
        data: &Arc<FileData>,
        status: &Status,
    ) -> Result<()> {
        let _turn = data.growing.lock().await;
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

/// True if a passthrough file has its whole version: an earlier fetch of it may have failed half-way.
fn is_whole(data: &FileData) -> bool {
    !data.backed.load(Ordering::SeqCst) || data.content().is_complete()
}
