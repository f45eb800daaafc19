//! Cache stores: the traits of stores and files, in a directory of the local disk or in memory.

use std::fs::File;
use std::io;
use std::sync::Arc;

use afs_wire::ids::{CellName, DataVersion, Fid};
use bytes::Bytes;

use crate::api::TokenOwner;

mod codec;
mod disk;
mod encryption;
mod kept;
mod memory;
mod offline;
mod pins;
mod ranges;
mod unsaved;
mod worker;

#[cfg(feature = "fuzzing")]
pub(crate) use disk::read_any_index;
pub use disk::{CacheKeyError, DiskCache, Sweeper};
pub use encryption::CacheSecret;
pub use memory::MemoryCache;
pub use offline::{OfflineObject, OfflineReader, OfflineRecord, OfflineSite, OfflineVolume};
pub(crate) use pins::PINS_MAX;
pub use pins::PinRecord;
#[cfg(feature = "fuzzing")]
pub(crate) use pins::read_any as read_any_pins;
pub use ranges::Ranges;
pub use unsaved::UnsavedRecord;
#[cfg(feature = "fuzzing")]
pub(crate) use unsaved::read_any as read_any_unsaved;
pub(crate) use worker::{CacheIo, CacheWorker, kind_of_failure};

/// Key of cached data: one version of one file of one cell. Data of two versions is never mixed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CacheKey {
    /// The cell.
    pub cell: CellName,
    /// The file.
    pub fid: Fid,
    /// The version.
    pub version: DataVersion,
}

/// Contents of a kept file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Length of the file at the server, in bytes.
    pub length: u64,
    /// Bytes of it that are cached.
    pub present: Ranges,
    /// Cached bytes that are zeros and take no space.
    pub holes: Ranges,
}

impl Kept {
    /// Bytes of space that it takes.
    pub fn room(&self) -> u64 {
        self.present.bytes().saturating_sub(self.holes.bytes())
    }
}

/// Whose data the kernel may write into a cache file, and of which version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenFile {
    /// The cell.
    pub cell: CellName,
    /// The file.
    pub fid: Fid,
    /// Who has it open for writing.
    pub owner: Option<TokenOwner>,
    /// The version that the writes change.
    pub version: DataVersion,
    /// Length of that version, in bytes.
    pub base_length: u64,
}

/// One record of unsaved data: an older one of the same data is not dropped in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnsavedTicket {
    /// Number of the data.
    pub number: u64,
    /// Number of the record, in this run.
    pub serial: u64,
}

/// A store of cached data. It knows nothing of servers and promises: it returns the data of a version, and Venus
/// determines whether that version is the newest.
///
/// All methods may block on a disk unless they say otherwise.
pub trait CacheStore: Send + Sync + 'static {
    /// A new empty file, which cannot be found until it is kept.
    fn create(&self) -> io::Result<Arc<dyn CacheFile>>;

    /// The file kept under a key and its contents, also from before a restart. Makes it the youngest.
    fn find(&self, key: &CacheKey) -> Option<(Arc<dyn CacheFile>, Kept)>;

    /// As [`CacheStore::find`], but never blocks: `None` also if the disk would be needed, or a lock whose holder uses
    /// the disk.
    fn find_open(&self, _key: &CacheKey) -> Option<(Arc<dyn CacheFile>, Kept)> {
        None
    }

    /// True if exactly this file with these contents is kept under the key, so that keeping it would change nothing.
    /// Never blocks; `false` if unknown.
    fn is_kept(&self, _key: &CacheKey, _file: &Arc<dyn CacheFile>, _kept: &Kept) -> bool {
        false
    }

    /// Bytes in holes of the file kept under the key. Never blocks; 0 if unknown.
    fn hole_bytes(&self, _key: &CacheKey) -> u64 {
        0
    }

    /// Cached bytes of the file kept under the key, 0 if none is. Never blocks; `None` if unknown.
    fn kept_bytes(&self, _key: &CacheKey) -> Option<u64> {
        None
    }

    /// True if any version of the fid may be kept. Never blocks; `true` if unknown.
    fn may_have(&self, cell: &CellName, fid: Fid) -> bool;

    /// Fids of the same volume whose kept files were used about when that of `fid` was: at most `examined` after it in
    /// their order, then as many before it, the nearest first. Never blocks; empty if unknown, or if nothing is kept of `fid`.
    fn kept_near(&self, _cell: &CellName, _fid: Fid, _examined: usize) -> Vec<Fid> {
        Vec::new()
    }

    /// Keeps a file under a key, in place of an older version of the same fid.
    fn keep(&self, key: &CacheKey, file: &Arc<dyn CacheFile>, kept: &Kept) -> io::Result<()>;

    /// Removes what is kept of a fid: it was changed locally and is no version of the server's, or it is not needed any
    /// more.
    fn forget(&self, cell: &CellName, fid: Fid);

    /// The kernel may write to a file from now on, without a request. If this process is killed, the next user of the store finds what
    /// was written since the last [`CacheFile::mark`] among the unsaved data; until the file is kept, or gone.
    ///
    /// # Errors
    /// The disk.
    fn begin_writing(&self, _file: &Arc<dyn CacheFile>, _of: WrittenFile) -> io::Result<()> {
        Ok(())
    }

    /// The same whether or not it was marked, if `is_changed`: marked writes that no server has are known to this process alone.
    ///
    /// # Errors
    /// The disk.
    fn set_changed(&self, _file: &Arc<dyn CacheFile>, _is_changed: bool) -> io::Result<()> {
        Ok(())
    }

    /// Pins a fid, or ends that: what is kept of a pinned one is not evicted. Holds until the end of this process.
    fn set_pinned(&self, _cell: &CellName, _fid: Fid, _is_pinned: bool) {}

    /// Keeps a list of pins beyond the end of this process and of the machine, in place of an older one. Returns when it is on
    /// disk.
    ///
    /// # Errors
    /// The disk; the older list stays. Or this store keeps none.
    fn keep_pins(&self, _pins: &[PinRecord]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The list that was kept last, also by an earlier user of the store.
    ///
    /// # Errors
    /// The disk, or it is damaged.
    fn pins(&self) -> io::Result<Vec<PinRecord>> {
        Ok(Vec::new())
    }

    /// Keeps a record of a pinned object or its volume beyond the end of this process, as files are kept: not after a crash of the
    /// machine.
    ///
    /// # Errors
    /// The disk; or this store keeps none.
    fn keep_offline(&self, _cell: &CellName, _fid: Fid, _record: OfflineRecord) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes such a record.
    fn forget_offline(&self, _cell: &CellName, _fid: Fid) {}

    /// The record that was kept last, also by an earlier user of the store.
    fn offline(&self, _cell: &CellName, _fid: Fid) -> Option<OfflineRecord> {
        None
    }

    /// The names of all such records.
    fn offline_names(&self) -> Vec<(CellName, Fid)> {
        Vec::new()
    }

    /// Keeps the data of a file, and its record, beyond the end of this process and of the machine, in place of an older
    /// record of the same file. Returns when both are on disk. `None`: this store cannot.
    ///
    /// # Errors
    /// The disk; an older record of the file stays.
    fn keep_unsaved(
        &self,
        _file: &Arc<dyn CacheFile>,
        _record: &UnsavedRecord,
    ) -> io::Result<Option<UnsavedTicket>> {
        Ok(None)
    }

    /// Ends that, unless a newer record of the same file was kept.
    fn drop_unsaved(&self, _ticket: UnsavedTicket) -> io::Result<()> {
        Ok(())
    }

    /// What earlier users of the store kept, by number.
    fn unsaved(&self) -> Vec<UnsavedTicket> {
        Vec::new()
    }

    /// Data and record of what an earlier user of the store kept, to be copied: the kernel may still write to it.
    ///
    /// # Errors
    /// One of the two is damaged or missing.
    fn open_unsaved(&self, _ticket: UnsavedTicket) -> io::Result<(Arc<dyn CacheFile>, UnsavedRecord)> {
        Err(io::ErrorKind::NotFound.into())
    }

    /// The file with such data, for an administrator, who has to find it.
    fn unsaved_place(&self, ticket: UnsavedTicket) -> String {
        format!("unsaved data {:x}", ticket.number)
    }

    /// Bytes used by all files, kept or not.
    fn bytes_used(&self) -> u64;

    /// The limit that `make_room` enforces; files being written may exceed it for a short time.
    fn bytes_max(&self) -> u64;

    /// True if `wanted` more bytes fit without eviction. Never blocks; `false` if unknown.
    fn fits(&self, _wanted: u64) -> bool {
        false
    }

    /// Evicts the least recently used files that are not open until `wanted` more bytes fit. Returns true if they do.
    fn make_room(&self, wanted: u64) -> bool;

    /// True if methods may block on a disk, so that they should run on blocking threads.
    fn blocks(&self) -> bool;

    /// Flushes what is kept to disk, for use after a restart of the process or the machine.
    fn shut_down(&self) -> io::Result<()>;
}

/// A file of a cache.
#[allow(clippy::len_without_is_empty)]
pub trait CacheFile: Send + Sync + 'static {
    /// Number of the file; never reused in this store.
    fn id(&self) -> u64;

    /// Reads up to `len` bytes; fewer at the end of the file.
    fn read_at(&self, pos: u64, len: usize) -> io::Result<Bytes>;

    /// As [`CacheFile::read_at`], without blocking; `None` if the disk would be needed, or if that is unknown.
    fn read_now(&self, _pos: u64, _len: usize) -> Option<Bytes> {
        None
    }

    /// Writes all bytes, extending the file if needed.
    fn write_at(&self, pos: u64, data: &[u8]) -> io::Result<()>;

    /// Truncates or extends the file.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Its length.
    fn len(&self) -> io::Result<u64>;

    /// From now on [`CacheFile::touched`] tells whether the file was written to, by Venus or by the kernel through
    /// passthrough. A concurrent write is either visible to reads after this call, or counts as a later write.
    fn mark(&self) -> io::Result<()>;

    /// True if it was written to since the last [`CacheFile::mark`], or was never marked.
    fn touched(&self) -> io::Result<bool>;

    /// Waits until the data is on disk. Afterwards writes through memory mappings are detected too.
    fn sync(&self) -> io::Result<()>;

    /// The bytes outside of holes, including those that the kernel wrote. Short holes, and holes beyond a bounded
    /// number, may count as data.
    fn data(&self) -> io::Result<Ranges>;

    /// Frees the space of these bytes, which then read as zeros. Does not extend the file.
    /// [`io::ErrorKind::Unsupported`] if the file system cannot do that.
    fn discard(&self, pos: u64, len: u64) -> io::Result<()>;

    /// Makes these bytes zeros, without space if possible. They must lie within the file.
    fn zero(&self, pos: u64, len: u64) -> io::Result<()> {
        match self.discard(pos, len) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            other => return other,
        }
        let zeros = [0; 1 << 14];
        let mut left = len;
        while left > 0 {
            let now = zeros.get(..left.min(zeros.len() as u64) as usize).unwrap_or(&zeros);
            self.write_at(pos + (len - left), now)?;
            left -= now.len() as u64;
        }
        Ok(())
    }

    /// The file itself, for passthrough; `None` for memory.
    fn file(&self) -> Option<Arc<File>>;
}
