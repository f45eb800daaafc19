//! Data of one version of a file in use: the cache file and its state.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use afs_rpc::sync::{self, Notify};
use afs_wire::fs::Status;
use afs_wire::ids::DataVersion;
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use crate::cache::CacheFile;
use crate::data::{ChangeLock, Content, Sums};

/// A cache file and its state.
pub(crate) struct FileData {
    pub file: Arc<dyn CacheFile>,
    content: Mutex<Content>,
    /// Notified when fetched bytes have arrived, or will not arrive.
    pub changed: Notify,
    /// Notified when a handle is released.
    pub released: Notify,
    /// Orders changes of the data and the stores that read it.
    pub change_lock: ChangeLock,
    /// Serialises appends.
    pub appending: sync::Mutex<()>,
    /// Serialises the detection of passthrough writes of the kernel, also with changes of the length and writes by
    /// Venus: what was detected would otherwise be recorded over later changes.
    pub kernel_writes: sync::Mutex<()>,
    /// Serialises keeping the data in the cache and removing what is kept.
    pub keeping: sync::Mutex<()>,
    /// Checksums of the data as last stored while the kernel could write by passthrough.
    pub stored_sums: Mutex<Arc<Sums>>,
    /// Stored while pages may have been dirty: later writes through a mapping to these pages are not detected until
    /// they are clean.
    pub stored_unsynced: AtomicBool,
    /// Contents of a small file as the kernel left it, to be sent by the next store.
    pub ready: Mutex<Option<Bytes>>,
    /// Counts changes by Venus, see [`FileData::forget_mark`]; those of the kernel are not counted.
    pub changes: AtomicU64,
    /// The file has been marked since it was last written to.
    pub marked: AtomicBool,
    /// The kernel was given the file for passthrough: it uses this file as long as it is open.
    pub backed: AtomicBool,
    /// It must not be kept as any version: the kernel may continue to write to the file after this process ends, or the server may have
    /// other bytes as its version.
    pub never_kept: AtomicBool,
    /// A lock on the file was lost while this was open: the data is not stored any more.
    pub lost: AtomicBool,
    /// Attributes with dirty data were handed out; after the store they must be invalidated.
    pub shown: AtomicBool,
    /// All of it was here at an open: it is this version, or one that begins with all of it, to its last handle.
    pub whole: AtomicBool,
    /// Serialises what gives the data another version. The open of a writer waits for it.
    pub growing: sync::Mutex<()>,
    /// Newest version that does not begin with the data, as far as is known; 0 before.
    pub differs: AtomicU64,
    /// Attributes of it were handed out while there was a newer version: names lead to that since.
    pub shown_older: AtomicBool,
    /// Status of its version, recorded when the server had a newer one.
    last_status: Mutex<Option<Status>>,
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
            changes: AtomicU64::new(0),
            marked: AtomicBool::new(false),
            backed: AtomicBool::new(false),
            never_kept: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            shown: AtomicBool::new(false),
            whole: AtomicBool::new(false),
            growing: sync::Mutex::new(()),
            differs: AtomicU64::new(0),
            shown_older: AtomicBool::new(false),
            last_status: Mutex::new(None),
        }
    }

    pub fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock()
    }

    /// Its version and length.
    pub fn extent(&self) -> (DataVersion, u64) {
        let content = self.content();
        (content.version, content.length)
    }

    /// Venus itself is about to write to the file: the mark is void, and the contents read for a store are outdated.
    pub fn forget_mark(&self) {
        self.marked.store(false, Ordering::SeqCst);
        self.changes.fetch_add(1, Ordering::SeqCst);
        *self.ready.lock() = None;
    }

    /// The server has a newer version than the one of this status.
    pub fn left_behind(&self, status: &Status) {
        if self.content().version == status.data_version {
            *self.last_status.lock() = Some(*status);
        }
    }

    /// The status of its version, if the server has had a newer one.
    pub fn last_status(&self) -> Option<Status> {
        let version = self.content().version;
        self.last_status.lock().filter(|status| status.data_version == version)
    }

    /// True if its handles go on with a newer version, as if they had been opened now: it was never all here, and nothing is written.
    pub fn goes_on(&self) -> bool {
        !self.whole.load(Ordering::SeqCst) && !self.content().is_changing()
    }

    /// Changes the checksums of the stored data. A comparison in progress finds that they have changed.
    pub fn change_sums(&self, change: impl FnOnce(&mut Sums)) {
        change(Arc::make_mut(&mut *self.stored_sums.lock()));
    }

    /// Prevents the eviction of these bytes for the lifetime of the pin.
    pub fn pin(self: &Arc<Self>, range: Range<u64>) -> Pin {
        self.content().pinned.push(range.clone());
        Pin { data: self.clone(), range }
    }
}

/// Bytes pinned by a reader.
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
