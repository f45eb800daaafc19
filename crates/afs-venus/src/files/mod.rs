//! The files of this machine: cache files, open handles, what is unsaved. Knows bytes, and makes no calls: what a server is to be asked,
//! or told, it answers.
//!
//! It alone counts and drops. These rules hold whenever the state of a file is not locked:
//!
//! * **Handles.** A handle counts once on its file (`opens`) and once on the data that it reads and writes (`users`), from
//!   [`Files::open_handle`] to [`Files::release_handle`] and no longer, whatever still works for it then. It is a writer there if it may change the
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

mod changing;
mod current_data;
mod disk;
mod eviction;
mod handles;
mod kernel_writes;
mod references;
mod room;
mod spare;
mod store_retries;
mod versions;

pub(crate) use disk::BRIEF_BYTES_MAX;
pub(crate) use handles::Handle;
pub(crate) use references::{DataUse, ReleasedHandle};

use std::sync::Arc;

use afs_rpc::EnvRef;
use afs_wire::ids::{CellName, UnixSeconds};

use crate::api::HandleId;
use crate::cache::{CacheStore, CacheWorker};
use crate::data::FileData;
use crate::error::Result;
use crate::identity::User;
use crate::key::Key;
use crate::vnode::{VnodeState, VnodeTable};
use handles::HandleTable;
use spare::Spares;
use store_retries::StoreRetries;

/// All files of this machine.
pub(crate) struct Files {
    env: EnvRef,
    cache: Arc<dyn CacheStore>,
    worker: CacheWorker,
    /// How the cells are named in the cache.
    cells: Vec<CellName>,
    vnodes: Arc<VnodeTable>,
    handles: HandleTable,
    store_retries: StoreRetries,
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
        let (handles, store_retries, spares) = Default::default();
        let worker = CacheWorker::new(env.clone(), cache.clone());
        Files { env, cache, worker, cells, vnodes, handles, store_retries, spares }
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
    pub fn has_open(&self, key: Key, user: User) -> bool {
        self.handles.has_open(key, user)
    }

    /// A store for somebody has failed: it is tried again for him.
    pub fn store_failed(&self, key: Key, user: User) {
        self.store_retries.set(key, user);
    }

    /// For whom a store is tried again, if one is.
    pub fn retry_user(&self, key: Key) -> Option<User> {
        self.store_retries.get(key)
    }

    /// If the file is still listed, its store is retried with this user's token, whichever user's retry failed last.
    pub fn keep_retry_user(&self, key: Key, user: User) {
        self.store_retries.keep_user(key, user);
    }

    /// Nothing is unsaved of a file.
    pub fn clear_store_retry(&self, key: Key) {
        self.store_retries.remove(key);
    }

    /// Files whose store failed, and for whom it is tried again.
    pub fn store_retries(&self) -> Vec<(Key, User)> {
        self.store_retries.all()
    }

    /// Whether a store is to be tried again.
    pub fn has_store_retries(&self) -> bool {
        !self.store_retries.is_empty()
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
