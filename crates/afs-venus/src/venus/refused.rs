//! Opens that the caller cannot use as they are.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::api::HandleId;
use crate::data::FileData;
use crate::venus::Venus;
use crate::venus::handles::Handle;

impl Venus {
    /// The caller will not use [`crate::Opened::backing`]: reads and writes come through Venus.
    pub fn passthrough_refused(&self, handle: HandleId) {
        if let Ok(handle) = self.handles.get(handle, "open")
            && handle.direct.swap(false, Ordering::SeqCst)
        {
            let data = handle.data();
            let mut content = data.content();
            content.direct = content.direct.saturating_sub(1);
        }
    }

    /// The open has failed after all, for a reason of the caller's. The handle is no more, nothing is stored, and what
    /// the open has cut is there again, unless somebody else has opened the file meanwhile or it had unsaved changes
    /// before.
    pub async fn give_up_open(&self, id: HandleId) {
        let Some(handle) = self.handles.remove(id) else { return };
        if handle.cut_what_was_saved.load(Ordering::SeqCst) {
            self.uncut(&handle, &handle.data());
        }
        self.speaking_for(handle.who).unhold(&handle).await;
    }

    /// Drops data that the server has and we have cut; it is fetched anew.
    fn uncut(&self, handle: &Handle, data: &Arc<FileData>) {
        {
            let mut state = handle.vnode.state();
            let is_current = state.data.as_ref().is_some_and(|current| Arc::ptr_eq(current, data));
            // The vnode's, the handle's and ours. Who opens the file takes his from the vnode, under this lock.
            if !is_current || Arc::strong_count(data) > 3 {
                return;
            }
            state.data = None;
        }
        self.tell(handle.vnode.key);
    }
}
