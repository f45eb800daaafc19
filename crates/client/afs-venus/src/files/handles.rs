//! Table of open handles.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::api::{HandleId, OpenFlags};
use crate::bypass::{Run, Window};
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Ahead;
use crate::identity::User;
use crate::key::Key;
use crate::vnode::Vnode;

/// An open handle.
pub(crate) struct Handle {
    pub id: HandleId,
    pub vnode: Arc<Vnode>,
    pub flags: OpenFlags,
    /// The user who opened it, with whose token it is read and stored.
    pub user: User,
    /// The kernel may write by passthrough.
    pub(super) passthrough: AtomicBool,
    /// close(2) was called; other descriptors may share this handle.
    closed: AtomicBool,
    /// The kernel has sent a request on it.
    requested: AtomicBool,
    /// The open truncated data that was not dirty.
    cut_clean_data: AtomicBool,
    data: Mutex<Arc<FileData>>,
    /// How it is read.
    pub run: Run,
    /// What is being fetched for it.
    pub ahead: Ahead,
    /// What it has read past the disk cache, or is about to.
    pub window: OnceLock<Window>,
}

impl Handle {
    /// True if it was opened for writing or truncation.
    pub fn may_change(&self) -> bool {
        self.flags.write || self.flags.truncate
    }

    /// The version that it reads and writes.
    pub fn data(&self) -> Arc<FileData> {
        self.data.lock().clone()
    }

    /// True if the kernel may write by passthrough.
    pub fn is_passthrough(&self) -> bool {
        self.passthrough.load(Ordering::SeqCst)
    }

    /// Records that close(2) was called.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// True if close(2) was called.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// True for the first request on it, and noted.
    pub(super) fn is_first_request(&self) -> bool {
        !self.requested.load(Ordering::Relaxed) && !self.requested.swap(true, Ordering::SeqCst)
    }

    /// Called before the open truncates the file.
    pub fn note_cut_at_open(&self) {
        let was_saved = !self.data().content().is_dirty();
        self.cut_clean_data.store(was_saved, Ordering::SeqCst);
    }

    /// True if the open truncated data that the server has.
    pub fn has_cut_clean_data(&self) -> bool {
        self.cut_clean_data.load(Ordering::SeqCst)
    }

    /// Replaces the data of the handle; returns the previous one.
    pub(super) fn replace(&self, data: &Arc<FileData>) -> Arc<FileData> {
        std::mem::replace(&mut *self.data.lock(), data.clone())
    }
}

/// All open handles.
#[derive(Default)]
pub(super) struct HandleTable {
    last: AtomicU64,
    open: Mutex<BTreeMap<HandleId, Arc<Handle>>>,
}

impl HandleTable {
    /// Adds a handle.
    pub fn add(&self, vnode: &Arc<Vnode>, flags: OpenFlags, user: User, data: &Arc<FileData>) -> Arc<Handle> {
        let handle = Arc::new(Handle {
            id: HandleId(self.last.fetch_add(1, Ordering::Relaxed) + 1),
            vnode: vnode.clone(),
            flags,
            user,
            passthrough: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            requested: AtomicBool::new(false),
            cut_clean_data: AtomicBool::new(false),
            data: Mutex::new(data.clone()),
            run: Run::default(),
            ahead: Ahead::default(),
            window: OnceLock::new(),
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

    /// True if the user has the object open.
    pub fn has_open(&self, key: Key, user: User) -> bool {
        self.open.lock().values().any(|handle| handle.vnode.key == key && handle.user == user)
    }

    /// True if a process runs the file.
    pub fn is_executed(&self, key: Key) -> bool {
        self.open.lock().values().any(|handle| handle.vnode.key == key && handle.flags.execute)
    }

    pub fn all(&self) -> Vec<Arc<Handle>> {
        self.open.lock().values().cloned().collect()
    }
}
