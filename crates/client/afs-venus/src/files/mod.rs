//! Open files of this machine: cache files, handles, dirty data. This part makes no calls; it returns what a server
//! must be called with.
//!
//! It alone counts references and drops data. These rules hold whenever the state of a file is not locked:
//!
//! * **Handles.** A handle is counted once on its file (`opens`) and once on the data that it reads and writes
//!   (`uses`), from [`Files::open_handle`] to [`Files::release_handle`], even if a task still works for it afterwards. It
//!   counts as a writer if it may change the file, and as a passthrough writer only if it is a writer. A new handle gets
//!   the current data only; the data of a writer is never replaced.
//! * **Data.** Data with references or dirty ranges ceases to be current only if it cannot be stored: the file was
//!   removed, no server will accept it, or its lock was lost. Readers of an older version may hold data that is not
//!   current any more.
//! * **Store retries.** A file whose data is dirty and not referenced is listed, with the user for whom the store is
//!   retried; dirty data of a file that does not exist any more is not listed.
//! * **Set aside.** Dirty data that ceases to be current because no server will accept it is set aside for the user who
//!   wrote it, in bounds: it is no file's data any more, and is read by that user's order alone.
//! * **Records on disk.** Data whose store failed is kept beyond the end of the mount, with a record, as long as it is
//!   listed or set aside. Who takes it from the list or the table drops the record.
//! * **Kept files.** The cache keeps a file only as a version that the server had. Before data changes, its kept file
//!   is removed, and data is not kept while it is referenced.
//! * **Orphans.** A file without a name continues for its handles, and leaves the status cache with the last of them.
//!
//! Lock order: state of an object, handle table, content of data, store retries.
//! The table of what is set aside comes before the content of data, and no other lock is held when it is taken.

mod ahead;
mod changing;
mod current_data;
mod disk;
mod eviction;
mod growth;
mod handles;
mod kept_unsaved;
mod kernel_writes;
mod offline;
mod references;
mod restored;
mod room;
mod set_aside;
mod small_data;
mod spare;
mod store_retries;
mod versions;

pub(crate) use ahead::{Ahead, FetchInProgress};
pub(crate) use disk::BRIEF_BYTES_MAX;
pub(crate) use handles::Handle;
pub(crate) use references::{DataUse, ReleasedHandle};
pub(crate) use restored::{CopiedKept, RestoredCopy};
pub(crate) use set_aside::SetAside;
pub(crate) use store_retries::{Failure, Restored, StoreRetry};

use std::sync::Arc;

use afs_rpc::EnvRef;
use afs_wire::ids::{FileTime, UnixSeconds};
use parking_lot::Mutex;

use crate::api::HandleId;
use crate::cache::{CacheStore, CacheWorker, UnsavedTicket};
use crate::data::FileData;
use crate::error::{Result, VenusError};
use crate::identity::User;
use crate::key::Key;
use crate::location::CellNames;
use crate::vnode::{VnodeState, VnodeTable};
use handles::HandleTable;
use set_aside::SetAsideTable;
use spare::Spares;
use store_retries::StoreRetries;

/// All open files of this machine.
pub(crate) struct Files {
    env: EnvRef,
    cache: Arc<dyn CacheStore>,
    worker: CacheWorker,
    /// Names of the cells in keys of the cache.
    cells: Arc<CellNames>,
    vnodes: Arc<VnodeTable>,
    handles: HandleTable,
    store_retries: StoreRetries,
    set_aside: SetAsideTable,
    /// Records of settled data that are still on disk.
    dropped_records: Arc<Mutex<Vec<UnsavedTicket>>>,
    spares: Spares,
}

impl Files {
    /// Makes the part, with no open file.
    pub fn new(
        env: EnvRef,
        cache: Arc<dyn CacheStore>,
        cells: Arc<CellNames>,
        vnodes: Arc<VnodeTable>,
    ) -> Self {
        let (handles, store_retries, set_aside, dropped_records, spares) = Default::default();
        let worker = CacheWorker::new(env.clone(), cache.clone());
        Files {
            env,
            cache,
            worker,
            cells,
            vnodes,
            handles,
            store_retries,
            set_aside,
            dropped_records,
            spares,
        }
    }

    /// An open handle. `operation` is named in the error if it is not open.
    pub fn handle(&self, id: HandleId, operation: &'static str) -> Result<Arc<Handle>> {
        self.handles.get(id, operation)
    }

    /// All open handles.
    pub fn handles(&self) -> Vec<Arc<Handle>> {
        self.handles.all()
    }

    /// True if the user has the object open.
    pub fn has_open(&self, key: Key, user: User) -> bool {
        self.handles.has_open(key, user)
    }

    /// True if a process of this machine runs the file as a program.
    pub fn is_executed(&self, key: Key) -> bool {
        self.handles.is_executed(key)
    }

    /// Records that a store for a user failed: it is retried for that user.
    pub fn store_failed(&self, key: Key, user: User) {
        self.store_retries.set(key, user);
    }

    /// The user for whom the store of a file is retried, if it is listed.
    pub fn retry_user(&self, key: Key) -> Option<User> {
        self.store_retries.get(key).map(|listed| listed.user)
    }

    /// Of data of a file that an earlier mount kept, for whom and on what condition it is stored.
    pub fn restored(&self, key: Key) -> Option<(User, Restored)> {
        self.store_retries.get(key).and_then(|listed| Some((listed.user, listed.restored?)))
    }

    /// If the file is still listed, its store is retried with this user's token, whichever user's retry failed last.
    pub fn keep_retry_user(&self, key: Key, user: User) {
        self.store_retries.keep_user(key, user);
    }

    /// Removes a file from the retries: nothing is dirty.
    pub fn clear_store_retry(&self, key: Key) {
        self.unlist(key);
    }

    /// Files whose store is to be retried, and for which user.
    pub fn store_retries(&self) -> Vec<(Key, User)> {
        self.store_retries.all().into_iter().map(|(key, listed)| (key, listed.user)).collect()
    }

    /// The same with the reasons.
    pub fn failed_stores(&self) -> Vec<(Key, StoreRetry)> {
        self.store_retries.all()
    }

    /// Records why the store of a file that is listed failed.
    pub fn note_failure(&self, key: Key, error: &VenusError) {
        self.store_retries.note_failure(key, error, self.wall());
    }

    /// The data that is set aside, the oldest first.
    pub fn all_set_aside(&self) -> Vec<SetAside> {
        self.set_aside.all()
    }

    /// Deletes data that was set aside. Returns false if it is not there any more.
    pub fn drop_set_aside(&self, number: u64) -> bool {
        let taken = self.set_aside.take(number);
        taken.as_ref().and_then(|it| it.kept).into_iter().for_each(|ticket| self.drop_record(ticket));
        taken.is_some()
    }

    /// True if a store is to be retried.
    pub fn has_store_retries(&self) -> bool {
        !self.store_retries.is_empty()
    }

    fn wall(&self) -> UnixSeconds {
        UnixSeconds(self.env.wall().secs_u32())
    }

    /// The present, as a time of a file.
    fn time(&self) -> FileTime {
        let now = self.env.wall();
        FileTime::new(UnixSeconds(now.secs_u32()), now.nanos)
    }
}

/// True if the data is what an open of the file gets.
fn is_current(state: &VnodeState, data: &Arc<FileData>) -> bool {
    state.file.data().is_some_and(|current| Arc::ptr_eq(current, data))
}

#[cfg(test)]
mod tests;
