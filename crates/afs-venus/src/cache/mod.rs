//! Where cached data lies: files on the local disk, or memory.

use std::fs::File;
use std::io;
use std::sync::Arc;

use afs_wire::ids::{CellName, DataVersion, Fid};
use bytes::Bytes;

mod disk;
mod io;
mod kept;
mod memory;
mod ranges;

pub use disk::DiskCache;
#[cfg(feature = "fuzzing")]
pub(crate) use disk::read_any_index;
pub(crate) use io::{CacheIo, CacheWorker};
pub use memory::MemoryCache;
pub use ranges::Ranges;

/// Which data: one version of one file of one cell. Data of two versions are never mixed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CacheKey {
    /// The cell.
    pub cell: CellName,
    /// The file.
    pub fid: Fid,
    /// The version.
    pub version: DataVersion,
}

/// What a kept file holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Length of the file at the server, in bytes.
    pub length: u64,
    /// Which of its bytes are here.
    pub present: Ranges,
    /// Which of these are zeros and take no room.
    pub holes: Ranges,
}

impl Kept {
    /// Bytes that it takes.
    pub fn room(&self) -> u64 {
        self.present.bytes().saturating_sub(self.holes.bytes())
    }
}

/// A place for data. It knows nothing of servers and promises: what it gives back is data of a version, and whether
/// that version is still the newest is Venus' question.
///
/// All methods may block on a disk; Venus calls them where that does no harm.
pub trait CacheStore: Send + Sync + 'static {
    /// A new empty file, not findable until it is kept.
    fn create(&self) -> io::Result<Arc<dyn CacheFile>>;

    /// The file kept under a key and what it holds, also one kept before a restart. Using it makes it young.
    fn find(&self, key: &CacheKey) -> Option<(Arc<dyn CacheFile>, Kept)>;

    /// As [`CacheStore::find`], but never blocks: `None` also when the answer would need the disk, or a lock that somebody
    /// has who is at the disk.
    fn find_open(&self, _key: &CacheKey) -> Option<(Arc<dyn CacheFile>, Kept)> {
        None
    }

    /// Whether just this file with just these bytes is kept under the key, so that keeping it would change nothing. Never
    /// blocks; `false` when the answer is not at hand.
    fn is_kept(&self, _key: &CacheKey, _file: &Arc<dyn CacheFile>, _kept: &Kept) -> bool {
        false
    }

    /// How many bytes of what is kept under the key are in holes. Never blocks; 0 also when the answer is not at hand.
    fn hole_bytes(&self, _key: &CacheKey) -> u64 {
        0
    }

    /// Whether anything is kept of this fid. Never blocks; `true` also when the answer is not at hand.
    fn may_have(&self, cell: &CellName, fid: Fid) -> bool;

    /// Keeps a file under a key. An older version of the same fid is forgotten.
    fn keep(&self, key: &CacheKey, file: &Arc<dyn CacheFile>, kept: &Kept) -> io::Result<()>;

    /// Forgets what is kept of this fid: it was changed here and is not any version, or it is of no use any more.
    fn forget(&self, cell: &CellName, fid: Fid);

    /// Bytes used by all files, kept or not.
    fn bytes_used(&self) -> u64;

    /// The bound that `make_room` holds; files being written may go beyond it for a moment.
    fn bytes_max(&self) -> u64;

    /// Whether `wanted` more bytes fit as it is. Never blocks; `false` also when the answer is not at hand.
    fn fits(&self, _wanted: u64) -> bool {
        false
    }

    /// Drops the longest unused files which nobody has open until `wanted` more bytes fit. Says whether they do.
    fn make_room(&self, wanted: u64) -> bool;

    /// Whether calls may block on a disk, so that they are better made elsewhere than where requests arrive.
    fn blocks(&self) -> bool;

    /// Makes what is kept outlive this process and the machine.
    fn shut_down(&self) -> io::Result<()>;
}

/// One file of a cache.
#[allow(clippy::len_without_is_empty)]
pub trait CacheFile: Send + Sync + 'static {
    /// A number of its own, never given to another file of this store.
    fn id(&self) -> u64;

    /// Reads up to `len` bytes; shorter at the end of the file.
    fn read_at(&self, pos: u64, len: usize) -> io::Result<Bytes>;

    /// As [`CacheFile::read_at`], of bytes that are in memory; `None` where the disk would have to be waited for, or where that
    /// is not known.
    fn read_now(&self, _pos: u64, _len: usize) -> Option<Bytes> {
        None
    }

    /// Writes all of it, growing the file.
    fn write_at(&self, pos: u64, data: &[u8]) -> io::Result<()>;

    /// Cuts or grows the file.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Its length.
    fn len(&self) -> io::Result<u64>;

    /// From now on, [`CacheFile::touched`] says whether anybody wrote to it: we, or the kernel behind our back.
    /// A write that runs at the same time is either seen by whoever reads after this call, or counts as a touch.
    fn mark(&self) -> io::Result<()>;

    /// Whether it was written to since the last [`CacheFile::mark`]; true if it was never marked.
    fn touched(&self) -> io::Result<bool>;

    /// Waits until the disk has it. Afterwards also writes through memory mappings count as touches.
    fn sync(&self) -> io::Result<()>;

    /// The bytes that are not in holes, as the kernel that may have written to the file knows them. Holes may be left out:
    /// short ones, and those beyond a bounded number.
    fn data(&self) -> io::Result<Ranges>;

    /// Gives the room of these bytes back; they read as zeros. Does not grow the file. [`io::ErrorKind::Unsupported`] where the
    /// disk cannot do that.
    fn discard(&self, pos: u64, len: u64) -> io::Result<()>;

    /// Makes these bytes zeros, without room where that can be. They must lie within the file.
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

    /// The file itself, for passthrough; `None` if there is none (memory).
    fn file(&self) -> Option<Arc<File>>;
}
