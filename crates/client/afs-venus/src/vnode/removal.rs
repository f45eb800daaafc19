//! Removal of a file's name by this client, in progress: a store that finds the file gone meanwhile has nothing to store.

use std::sync::Arc;

use super::Vnode;

/// The removal of a name of a file, until this is dropped.
pub(crate) struct Removal(Arc<Vnode>);

impl Removal {
    /// Begins to remove a name.
    pub fn of(vnode: Arc<Vnode>) -> Self {
        vnode.state().file.begin_removal();
        Removal(vnode)
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        self.0.state().file.end_removal();
    }
}
