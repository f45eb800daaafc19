//! The files of this machine: cache files, open handles, what is unsaved. Knows bytes, and makes no calls: what a server is to be asked,
//! or told, it answers.
//!
//! It alone counts and drops. These rules hold whenever the state of a file is not locked:
//!
//! * **Handles.** A handle counts once on its file (`opens`) and once on the data that it reads and writes (`users`), from
//!   [`Files::hold`] to [`Files::let_go`] and no longer, whatever still works for it then. It is a writer there if it may change the
//!   file, and direct only as a writer. It comes to no data but the file's own; the data of a writer never changes under it.
//! * **Data.** Of data with users or with something unsaved the file is only rid if there is nobody to have it: the file is gone,
//!   no server will take it, its lock is lost. Readers of an older version alone are left with data that is not the file's any more.
//! * **Unsaved.** Of data without users, what is unsaved is listed, with the person for whom it is stored again; what has no
//!   file any more to be stored to is not listed.
//! * **Kept.** What the cache keeps of a file is a version as a server had it. What is about to change is forgotten there first, and
//!   nothing is kept while it has users.
//! * **Orphans.** A file without a name goes on for its handles, and is out of the status cache with the last of them.
//!
//! Locks are taken in this order: the state of an object, its handles, the content of data, what is unsaved.

mod absorbing;
mod changing;
mod choice;
mod counting;
mod disk;
mod handles;
mod parting;
mod room;
mod spare;
mod unsaved;
mod versions;

pub(crate) use counting::{InUse, LetGo};
pub(crate) use disk::BRIEF_BYTES_MAX;
pub(crate) use handles::Handle;

use std::sync::Arc;

use afs_rpc::EnvRef;
use afs_wire::ids::{CellName, UnixSeconds};

use crate::api::HandleId;
use crate::cache::{CacheStore, Worker};
use crate::data::FileData;
use crate::error::Result;
use crate::identity::Who;
use crate::key::Key;
use crate::vnode::{VnodeState, VnodeTable};
use handles::HandleTable;
use spare::Spares;
use unsaved::Unsaved;

/// All files of this machine.
pub(crate) struct Files {
    env: EnvRef,
    cache: Arc<dyn CacheStore>,
    worker: Worker,
    /// How the cells are named in the cache.
    cells: Vec<CellName>,
    vnodes: Arc<VnodeTable>,
    handles: HandleTable,
    unsaved: Unsaved,
    spares: Spares,
}

impl Files {
    /// Nothing is open yet.
    pub fn new(
        env: EnvRef,
        cache: Arc<dyn CacheStore>,
        cells: Vec<CellName>,
        vnodes: Arc<VnodeTable>,
    ) -> Self {
        let (handles, unsaved, spares) = Default::default();
        let worker = Worker::new(env.clone(), cache.clone());
        Files { env, cache, worker, cells, vnodes, handles, unsaved, spares }
    }

    /// An open file. `operation` goes into the error for one that is not open.
    pub fn handle(&self, id: HandleId, operation: &'static str) -> Result<Arc<Handle>> {
        self.handles.get(id, operation)
    }

    /// All open files.
    pub fn handles(&self) -> Vec<Arc<Handle>> {
        self.handles.all()
    }

    /// Whether somebody has an object open.
    pub fn holds(&self, key: Key, who: Who) -> bool {
        self.handles.holds(key, who)
    }

    /// A store for somebody has failed: it is tried again for him.
    pub fn store_failed(&self, key: Key, who: Who) {
        self.unsaved.failed_for(key, who);
    }

    /// For whom a store is tried again, if one is.
    pub fn unsaved_for(&self, key: Key) -> Option<Who> {
        self.unsaved.listed_for(key)
    }

    /// If the file is still listed, its store is retried with this user's token, whichever user's retry failed last.
    pub fn stays_unsaved_for(&self, key: Key, who: Who) {
        self.unsaved.stays_for(key, who);
    }

    /// Nothing is unsaved of a file.
    pub fn is_saved(&self, key: Key) {
        self.unsaved.forget(key);
    }

    /// Files whose store failed, and for whom it is tried again.
    pub fn unsaved(&self) -> Vec<(Key, Who)> {
        self.unsaved.all()
    }

    /// Whether a store is to be tried again.
    pub fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    fn wall(&self) -> UnixSeconds {
        UnixSeconds(self.env.wall().secs_u32())
    }
}

/// Whether this is what a file is opened with.
fn is_current(state: &VnodeState, data: &Arc<FileData>) -> bool {
    state.file.data().is_some_and(|current| Arc::ptr_eq(current, data))
}

#[cfg(test)]
mod tests;
