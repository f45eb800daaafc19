//! Closing files: close(2), fsync(2), and the release of a handle.

use afs_rpc::boxed;
use std::sync::atomic::Ordering;

use crate::api::{HandleId, NodeId};
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::{Handle, ReleasedHandle};
use crate::key::NodeTarget;
use crate::venus::Venus;
use crate::venus::maintenance::is_final;
use crate::venus::store_reason::StoreReason;

impl Venus {
    /// close(2): stores the dirty data of a handle that may write, and returns the error of the store. Releases the
    /// locks of `lock_owner` on the file.
    #[boxed]
    pub async fn flush(&self, handle: HandleId, lock_owner: u64) -> Result<()> {
        let handle = self.files.handle(handle, "close")?;
        self.files.note_request(&handle);
        let me = self.as_user(handle.user);
        let stored = match handle.may_change() {
            true => me.store(&handle.vnode, &handle.data(), StoreReason::Close).await,
            false => Ok(()),
        };
        me.unlock_all(&handle.vnode, lock_owner).await;
        handle.close();
        let stored = stored.and_then(|()| me.decided_data_is_lost(&handle));
        me.kept_if_failed(&handle, stored).await
    }

    /// Stores dirty data and asks the server to flush it to disk.
    #[boxed]
    pub async fn fsync(&self, handle: HandleId) -> Result<()> {
        let handle = self.files.handle(handle, "fsync")?;
        let data = handle.data();
        if handle.is_passthrough() {
            // Writes through a mapping are detected only if the pages were clean before.
            self.files.note_kernel_writes_in(&data).await?;
            let synced = data.clone();
            self.files.disk(move || synced.file.sync()).await?;
            // They were dirty if something was stored since the last fsync.
            if data.stored_unsynced.swap(false, Ordering::SeqCst) {
                self.files.compare_with_stored(&data, u32::MAX).await?;
            }
        }
        let me = self.as_user(handle.user);
        let stored = me.store(&handle.vnode, &data, StoreReason::Sync).await;
        me.kept_if_failed(&handle, stored).await?;
        // After the store: the data of a new file goes with its creation.
        me.settle_object(handle.vnode.key).await
    }

    /// fsync(2) on a directory: the server has all changes of names in it that were decided under a lease.
    #[boxed]
    pub async fn fsync_directory(&self, node: NodeId) -> Result<()> {
        match self.node_target(node)? {
            NodeTarget::Object(key) => self.settle_object(key).await,
            NodeTarget::Cells | NodeTarget::Snapshots(..) | NodeTarget::Unreached(..) => Ok(()),
        }
    }

    /// The error of a file with data that was closed and could not be stored in the end.
    fn decided_data_is_lost(&self, handle: &Handle) -> Result<()> {
        match handle.may_change() {
            true => self.leases.take_failure(handle.vnode.key).map_or(Ok(()), Err),
            false => Ok(()),
        }
    }

    /// The outcome of a store, for a program. What failed is listed and kept before the program learns of it.
    async fn kept_if_failed(&self, handle: &Handle, stored: Result<()>) -> Result<()> {
        if let Err(error) = &stored
            && !is_final(error.kind)
            && handle.data().content().is_dirty()
        {
            self.files.store_failed(handle.vnode.key, self.context.user);
            self.files.note_failure(handle.vnode.key, error);
        }
        if stored.is_err() {
            self.keep_unsaved(&handle.vnode, &handle.data()).await;
        }
        stored
    }

    /// Stores what was written through a mapping after the last close; no other event reports it. The kernel releases a
    /// file some time after its close: another writer may have opened, truncated and partly written it by then, and
    /// stores it at its own close.
    async fn store_at_release(&self, handle: &Handle) -> Result<()> {
        let data = handle.data();
        let _guard = handle.vnode.changing.lock().await;
        // Once is enough: the kernel does not use the file any more when it sends the release.
        self.files.note_kernel_writes_to_store(&handle.vnode, &data).await?;
        if handle.is_passthrough() {
            self.files.compare_with_stored(&data, 1).await?;
        }
        let failures = data.content().failures;
        match failures {
            0 => self.store_noted(&handle.vnode, &data, StoreReason::Release).await,
            _ => self.retry_noted(&handle.vnode, &data, StoreReason::Release).await,
        }
    }

    /// The last reference to a handle is gone. Stores dirty data, since a mapping may have been written after the last
    /// close.
    #[boxed]
    pub async fn release(&self, id: HandleId) -> Result<()> {
        let Ok(handle) = self.files.handle(id, "release") else {
            return Err(VenusError::new(ErrorKind::BadHandle, "release"));
        };
        self.files.note_request(&handle);
        self.as_user(handle.user).release_held(&handle).await
    }

    async fn release_held(&self, handle: &Handle) -> Result<()> {
        let stored = match handle.may_change() {
            true => self.store_at_release(handle).await,
            false => Ok(()),
        };
        if handle.may_change() {
            // The open that created it has judged an empty file.
            self.apply_rules(&handle.vnode, handle.data().extent().1);
        }
        if let Some(released) = self.files.release_handle(handle.id) {
            self.after_release(released).await;
        }
        match &stored {
            Err(error) if is_final(error.kind) => self.give_up_data(&handle.vnode, error).await,
            Err(error) => {
                self.files.note_failure(handle.vnode.key, error);
                self.keep_unsaved(&handle.vnode, &handle.data()).await;
            }
            Ok(()) => {}
        }
        stored
    }

    /// Completes the release of a handle: removes its hidden name, and retires unreferenced data.
    pub(super) async fn after_release(&self, released: ReleasedHandle) {
        let ReleasedHandle { handle, hidden } = released;
        if let Some(hidden) = hidden {
            self.end_hidden(handle.vnode.key, hidden).await;
        }
        if handle.vnode.state().file.opens() == 0 {
            self.leases.take_failure(handle.vnode.key);
            if handle.vnode.state().locks.is_kept && !self.is_closing() {
                self.release_kept_lock(&handle.vnode).await;
            }
        }
        self.retire(&handle.vnode, &handle.data(), self.context.user).await;
    }
}
