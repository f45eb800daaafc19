//! Opens that the caller could not complete.

use crate::api::HandleId;
use crate::venus::Venus;
use afs_rpc::boxed;

impl Venus {
    /// The caller does not use [`crate::Opened::backing`]: reads and writes come through Venus.
    pub fn passthrough_refused(&self, handle: HandleId) {
        self.files.stop_passthrough(handle);
    }

    /// Cancels an open that has failed in the caller. The handle is released, nothing is stored, and a truncation by
    /// the open is undone, unless the file was opened again meanwhile or was dirty before.
    #[boxed]
    pub async fn cancel_open(&self, id: HandleId) {
        let Some(gone) = self.files.release_handle(id) else { return };
        // The kernel was not told to drop them.
        gone.handle.vnode.state().file.forget_pages();
        if self.files.undo_cut(&gone.handle) {
            self.invalidate(gone.handle.vnode.key);
        }
        self.as_user(gone.handle.user).after_release(gone).await;
    }
}
