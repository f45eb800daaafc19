//! The trait of segment stores.

use std::io;

use crate::drive::Usage;

/// Numbered, sparse runs of bytes: a directory of files, memory, or a simulated disk.
///
/// Its guarantees: a write may be lost, torn or reordered with others until [`SegmentStore::sync`] of its segment has
/// returned, and is never undone afterwards. A read returns the latest write of this process.
pub trait SegmentStore: Send + Sync + 'static {
    /// The numbers of all segments, in order.
    fn list(&self) -> io::Result<Vec<u64>>;

    /// A segment's name for an administrator, who has to find it.
    fn place(&self, segment: u64) -> String {
        format!("segment {segment:x}")
    }

    /// Length of the segment in bytes, holes included.
    fn len(&self, segment: u64) -> io::Result<u64>;

    /// Fills `out` from `offset`; holes read as zeros, reading past the end is `UnexpectedEof`.
    fn read_at(&self, segment: u64, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes all of `data`, creating the segment if it does not exist. A full medium returns `StorageFull`.
    fn write_at(&self, segment: u64, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Returns when everything written to the segment so far, and its existence, is durable.
    fn sync(&self, segment: u64) -> io::Result<()>;

    /// Frees a range; it reads as zeros afterwards. Both numbers are multiples of 4096.
    fn punch(&self, segment: u64, offset: u64, len: u64) -> io::Result<()>;

    /// Removes a segment. Removing one that does not exist is no error.
    fn remove(&self, segment: u64) -> io::Result<()>;

    /// Free and total space on the medium.
    fn usage(&self) -> io::Result<Usage>;
}
