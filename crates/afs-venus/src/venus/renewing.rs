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
    pub(super) async fn see_newest(&self, handle: &Arc<Handle>, was_unlocked: bool) -> Result<()> {
        let vnode = &handle.vnode;
        let volume = self.volume_of(vnode.key).await?;
        if vnode.state().file.is_orphan() || !volume.is_writable() {
            return Ok(());
        }
        let status = match was_unlocked {
            // Asked even if we hold a promise: a server that could not reach us could not break it.
            true => self.ask_status(vnode, &volume).await?,
            false => self.status_unseen(vnode).await?,
        };
        let data = handle.data();
        if data.content().version == status.data_version && is_whole(&data) {
            return Ok(());
        }
        let is_shared = {
            let content = data.content();
            content.users.writers() > 0 || content.is_dirty() || data.backed.load(Ordering::SeqCst)
        };
        match is_shared {
            true => self.renew(handle, &data, &status).await?,
            false => drop(self.files.go_on(handle, &status).await?),
        }
        if self.above.data(vnode.key) {
            self.above.settled().await;
        }
        Ok(())
    }

    /// Puts another version in place of the one in a cache file, for all who have it open. What is unsaved stays on top.
    /// A kernel that reads and writes the file by itself finds all of it there afterwards.
    async fn renew(&self, handle: &Arc<Handle>, data: &Arc<FileData>, status: &Status) -> Result<()> {
        self.files.absorb_data(data).await?;
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
