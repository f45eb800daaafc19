//! Stale and removed objects, for use by the operations.

use std::sync::Arc;

use crate::key::Key;
use crate::venus::Venus;
use crate::vnode::Vnode;

impl Venus {
    /// Invalidates an object, and the names in it.
    pub(super) fn invalidate(&self, key: Key) {
        self.promises.invalidate(key);
    }

    /// Makes the next access ask the server.
    pub(super) fn distrust(&self, vnode: &Vnode) {
        self.promises.distrust(vnode);
    }

    /// Records that an object does not exist any more; locks on it have ended.
    pub(super) fn note_removed(&self, vnode: &Arc<Vnode>) {
        self.promises.note_removed(vnode);
        self.leftover_locks.remove(vnode.key);
        self.files.forget_kept(vnode.key);
        if !vnode.state().is_in_use() {
            self.vnodes.remove(vnode.key);
        }
    }
}
