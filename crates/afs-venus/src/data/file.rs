//! The data of one version of a file while it is in use.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use afs_rpc::sync::{self, Notify};
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use crate::cache::CacheFile;
use crate::data::{ChangeLock, Content, Sums};

/// A cache file and what is in it.
pub(crate) struct FileData {
    pub file: Arc<dyn CacheFile>,
    content: Mutex<Content>,
    /// Bytes arrived, or will not arrive.
    pub changed: Notify,
    /// A handle is closed for good.
    pub released: Notify,
    /// Changes of the bytes, and the stores that read them.
    pub change_lock: ChangeLock,
    /// One append at a time.
    pub appending: sync::Mutex<()>,
    /// What the kernel has written is looked for and noted by one at a time, and not while we set a length or write
    /// ourselves: what was found would be noted over what has happened since.
    pub kernel_writes: sync::Mutex<()>,
    /// It is put away, or what is kept of it is forgotten, by one at a time.
    pub keeping: sync::Mutex<()>,
    /// Checksums of the data as last stored while a kernel could write behind our back.
    pub stored_sums: Mutex<Arc<Sums>>,
    /// It was stored while pages of it may have been dirty: what a mapping writes to these leaves no trace until they are clean.
    pub stored_unsynced: AtomicBool,
    /// The whole of a small file as the kernel left it: what the next store sends.
    pub ready: Mutex<Option<Bytes>>,
    /// The file has been marked since anybody wrote to it.
    pub marked: AtomicBool,
    /// The kernel was given the file, to read or write it by itself: it has no other for as long as it is open.
    pub backed: AtomicBool,
    /// The kernel may go on writing to the file when this process has ended: it must not be found as any version then.
    pub outlives_process: AtomicBool,
    /// A lock on the file was lost while this was open: it is stored no more.
    pub lost: AtomicBool,
    /// Attributes that tell of unsaved changes were handed out; after the store they are no longer true.
    pub shown: AtomicBool,
    /// Where a sequential reader is expected next.
    pub next_read: AtomicU64,
}

impl FileData {
    pub fn new(file: Arc<dyn CacheFile>, content: Content) -> Self {
        FileData {
            file,
            content: Mutex::new(content),
            changed: Notify::new(),
            released: Notify::new(),
            change_lock: ChangeLock::new(),
            appending: sync::Mutex::new(()),
            kernel_writes: sync::Mutex::new(()),
            keeping: sync::Mutex::new(()),
            stored_sums: Mutex::default(),
            stored_unsynced: AtomicBool::new(false),
            ready: Mutex::new(None),
            marked: AtomicBool::new(false),
            backed: AtomicBool::new(false),
            outlives_process: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            shown: AtomicBool::new(false),
            next_read: AtomicU64::new(0),
        }
    }

    pub fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock()
    }

    /// We write to the file ourselves: the mark is gone, and what was read to be stored is old.
    pub fn forget_mark(&self) {
        self.marked.store(false, Ordering::SeqCst);
        *self.ready.lock() = None;
    }

    /// Changes what is known of the data as last stored. Who compares them at this moment finds that they have changed.
    pub fn change_sums(&self, change: impl FnOnce(&mut Sums)) {
        change(Arc::make_mut(&mut *self.stored_sums.lock()));
    }

    /// Keeps these bytes from being dropped for as long as the pin lives.
    pub fn pin(self: &Arc<Self>, range: Range<u64>) -> Pin {
        self.content().pinned.push(range.clone());
        Pin { data: self.clone(), range }
    }
}

/// Bytes that a reader needs.
pub(crate) struct Pin {
    data: Arc<FileData>,
    range: Range<u64>,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut content = self.data.content();
        if let Some(at) = content.pinned.iter().position(|range| *range == self.range) {
            content.pinned.swap_remove(at);
        }
    }
}
