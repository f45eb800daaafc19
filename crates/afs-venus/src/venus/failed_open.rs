//! Opens that the caller cannot use as they are.

use crate::api::HandleId;
use crate::venus::Venus;

impl Venus {
    /// The caller will not use [`crate::Opened::backing`]: reads and writes come through Venus.
    pub fn passthrough_refused(&self, handle: HandleId) {
        self.files.stop_passthrough(handle);
    }

    /// The open has failed after all, for a reason of the caller's. The handle is no more, nothing is stored, and what
    /// the open has cut is there again, unless somebody else has opened the file meanwhile or it had unsaved changes
    /// before.
    pub async fn cancel_open(&self, id: HandleId) {
        let Some(gone) = self.files.release_handle(id) else { return };
        if self.files.undo_cut(&gone.handle) {
            self.invalidate(gone.handle.vnode.key);
        }
        self.as_user(gone.handle.user).after_release(gone).await;
    }
}
