//! Open files.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::api::{HandleId, OpenFlags};
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::identity::Who;
use crate::key::Key;
use crate::lock;
use crate::vnode::Vnode;

/// One open file.
pub(crate) struct Handle {
    pub id: HandleId,
    pub vnode: Arc<Vnode>,
    pub flags: OpenFlags,
    /// Who opened it: for him it is read and stored.
    pub who: Who,
    /// The kernel may write to the cache file itself.
    pub direct: AtomicBool,
    /// close(2) has been called. Others may have the same open file.
    pub closed: AtomicBool,
    /// The open has cut data of which nothing was unsaved.
    pub cut_what_was_saved: AtomicBool,
    data: Mutex<Arc<FileData>>,
}

impl Handle {
    pub fn new(id: HandleId, vnode: Arc<Vnode>, flags: OpenFlags, who: Who, data: Arc<FileData>) -> Self {
        data.handles.fetch_add(1, Ordering::SeqCst);
        let no = || AtomicBool::new(false);
        let (direct, closed, cut_what_was_saved) = (no(), no(), no());
        Handle { id, vnode, flags, who, direct, closed, cut_what_was_saved, data: Mutex::new(data) }
    }

    /// Whether it was opened to change the file.
    pub fn may_change(&self) -> bool {
        self.flags.write || self.flags.truncate
    }

    /// The version it reads and writes.
    pub fn data(&self) -> Arc<FileData> {
        lock(&self.data).clone()
    }

    /// It goes on with another version, because the rest of the old one is not to be had any more.
    pub fn switch(&self, data: Arc<FileData>) {
        data.handles.fetch_add(1, Ordering::SeqCst);
        let old = std::mem::replace(&mut *lock(&self.data), data);
        old.handles.fetch_sub(1, Ordering::SeqCst);
    }
}

/// All open files.
#[derive(Default)]
pub(crate) struct HandleTable {
    next: AtomicU64,
    open: Mutex<BTreeMap<HandleId, Arc<Handle>>>,
}

impl HandleTable {
    pub fn next_id(&self) -> HandleId {
        HandleId(self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub fn add(&self, handle: Handle) {
        lock(&self.open).insert(handle.id, Arc::new(handle));
    }

    pub fn get(&self, id: HandleId, operation: &'static str) -> Result<Arc<Handle>> {
        lock(&self.open).get(&id).cloned().ok_or(VenusError::new(ErrorKind::BadHandle, operation))
    }

    pub fn remove(&self, id: HandleId) -> Option<Arc<Handle>> {
        lock(&self.open).remove(&id)
    }

    /// Whether somebody has an object open.
    pub fn holds(&self, key: Key, who: Who) -> bool {
        lock(&self.open).values().any(|handle| handle.vnode.key == key && handle.who == who)
    }

    pub fn all(&self) -> Vec<Arc<Handle>> {
        lock(&self.open).values().cloned().collect()
    }
}
