//! Objects that are stale or gone, as the operations see it.

use std::sync::Arc;

use crate::key::Key;
use crate::venus::Venus;
use crate::vnode::Vnode;

impl Venus {
    /// Tells the sink that what it holds of an object, and of the names in it, may be stale.
    pub(super) fn invalidate(&self, key: Key) {
        self.promises.invalidate(key);
    }

    /// The next look asks the server.
    pub(super) fn distrust(&self, vnode: &Vnode) {
        self.promises.distrust(vnode);
    }

    /// An object does not exist any more, and no lock on it.
    pub(super) fn note_removed(&self, vnode: &Arc<Vnode>) {
        self.promises.note_removed(vnode);
        self.leftover_locks.remove(vnode.key);
        self.files.forget_kept(vnode.key);
        if !vnode.state().is_in_use() {
            self.vnodes.remove(vnode.key);
        }
    }
}
