//! Showing the newest version to one who has locked a file that is open.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::Status;

use crate::data::FileData;
use crate::error::Result;
use crate::venus::Venus;
use crate::venus::handles::Handle;

impl Venus {
    /// Lets a handle go on with the newest version: the one at the server if it `was_unlocked` (others may have changed it
    /// until now), else the one that is used here.
    pub(super) async fn see_newest(&self, handle: &Arc<Handle>, was_unlocked: bool) -> Result<()> {
        let vnode = &handle.vnode;
        let volume = self.volume_of(vnode.key).await?;
        if vnode.state().orphan || !volume.is_writable() {
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
            content.writers > 0 || content.is_dirty() || data.backed.load(Ordering::SeqCst)
        };
        match is_shared {
            true => self.renew(handle, &data, &status).await?,
            false => handle.switch(self.current_data(vnode, &status).await?),
        }
        if self.above.data(vnode.key) {
            self.above.settled().await;
        }
        Ok(())
    }

    /// Puts another version in place of the one in a cache file, for all who have it open. What is unsaved stays on top.
    /// A kernel that reads and writes the file by itself finds all of it there afterwards.
    async fn renew(&self, handle: &Arc<Handle>, data: &Arc<FileData>, status: &Status) -> Result<()> {
        self.absorb_data(data).await?;
        self.take_version(data, status).await?;
        if !data.backed.load(Ordering::SeqCst) {
            return Ok(());
        }
        let length = data.content().length;
        self.fetch_range(handle, 0..length).await?;
        let _absorbing = data.absorbing.lock().await;
        let marked = data.clone();
        self.disk(move || marked.file.mark()).await?;
        data.marked.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// The data is of another version from now on: nothing of it is here but what is unsaved. What lies behind the end in
    /// the cache file is none of it, and must not be met when the file grows.
    pub(super) async fn take_version(&self, data: &Arc<FileData>, status: &Status) -> Result<()> {
        let _quiet = data.gate.quiet().await;
        let _absorbing = data.absorbing.lock().await;
        let length = {
            let mut content = data.content();
            match content.is_dirty() {
                true => content.rebase(status.data_version, status.length),
                false => content.renew(status.data_version, status.length),
            }
            content.length
        };
        data.forget_mark();
        *crate::lock(&data.stored_sums) = Arc::default();
        let file = data.file.clone();
        self.disk(move || file.set_len(length)).await
    }
}

/// Whether a kernel that has the file finds all of its version there: an earlier attempt to bring it may have failed half-way.
fn is_whole(data: &FileData) -> bool {
    !data.backed.load(Ordering::SeqCst) || data.content().is_complete()
}
