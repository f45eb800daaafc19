//! Open files.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::api::{HandleId, OpenFlags};
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::identity::User;
use crate::key::Key;
use crate::vnode::Vnode;

/// One open file.
pub(crate) struct Handle {
    pub id: HandleId,
    pub vnode: Arc<Vnode>,
    pub flags: OpenFlags,
    /// Who opened it: for him it is read and stored.
    pub user: User,
    /// The kernel may write to the cache file itself.
    pub(super) passthrough: AtomicBool,
    /// close(2) has been called. Others may have the same open file.
    closed: AtomicBool,
    /// The open has cut data of which nothing was unsaved.
    cut_clean_data: AtomicBool,
    data: Mutex<Arc<FileData>>,
}

impl Handle {
    /// Whether it was opened to change the file.
    pub fn may_change(&self) -> bool {
        self.flags.write || self.flags.truncate
    }

    /// The version it reads and writes.
    pub fn data(&self) -> Arc<FileData> {
        self.data.lock().clone()
    }

    /// Whether the kernel may write to the cache file itself.
    pub fn is_passthrough(&self) -> bool {
        self.passthrough.load(Ordering::SeqCst)
    }

    /// close(2) has been called.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Whether close(2) has been called.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// The open is about to cut the file.
    pub fn note_cut_at_open(&self) {
        let was_saved = !self.data().content().is_dirty();
        self.cut_clean_data.store(was_saved, Ordering::SeqCst);
    }

    /// Whether the open has cut data that the server has.
    pub fn has_cut_clean_data(&self) -> bool {
        self.cut_clean_data.load(Ordering::SeqCst)
    }

    /// Puts other data in the place of the handle's, which is answered.
    pub(super) fn replace(&self, data: &Arc<FileData>) -> Arc<FileData> {
        std::mem::replace(&mut *self.data.lock(), data.clone())
    }
}

/// All open files.
#[derive(Default)]
pub(super) struct HandleTable {
    last: AtomicU64,
    open: Mutex<BTreeMap<HandleId, Arc<Handle>>>,
}

impl HandleTable {
    /// A new handle.
    pub fn add(&self, vnode: &Arc<Vnode>, flags: OpenFlags, user: User, data: &Arc<FileData>) -> Arc<Handle> {
        let handle = Arc::new(Handle {
            id: HandleId(self.last.fetch_add(1, Ordering::Relaxed) + 1),
            vnode: vnode.clone(),
            flags,
            user,
            passthrough: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            cut_clean_data: AtomicBool::new(false),
            data: Mutex::new(data.clone()),
        });
        self.open.lock().insert(handle.id, handle.clone());
        handle
    }

    pub fn get(&self, id: HandleId, operation: &'static str) -> Result<Arc<Handle>> {
        self.open.lock().get(&id).cloned().ok_or(VenusError::new(ErrorKind::BadHandle, operation))
    }

    pub fn remove(&self, id: HandleId) -> Option<Arc<Handle>> {
        self.open.lock().remove(&id)
    }

    /// Whether somebody has an object open.
    pub fn has_open(&self, key: Key, user: User) -> bool {
        self.open.lock().values().any(|handle| handle.vnode.key == key && handle.user == user)
    }

    pub fn all(&self) -> Vec<Arc<Handle>> {
        self.open.lock().values().cloned().collect()
    }
}
