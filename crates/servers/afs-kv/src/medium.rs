//! The traits of a medium and of its blobs.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// A small set of named blobs: a directory of files, memory, or a simulated disk.
///
/// Its guarantees: a write is not durable before [`Blob::sync`] has returned, may be lost, torn at any byte, or
/// reordered with other writes until then, and is never undone afterwards. A read returns the latest write of this
/// process, synced or not.
pub trait Medium: Send + Sync + 'static {
    /// Opens the blob, creating it empty if it does not exist. Its existence is durable when this returns.
    fn open(&self, name: &str) -> io::Result<Arc<dyn Blob>>;

    /// The names of all blobs, in order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Removes a blob. Removing one that does not exist is no error.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// One random-access run of bytes on a [`Medium`].
pub trait Blob: Debug + Send + Sync + 'static {
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether the blob holds no byte.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `out` from `offset`; reading past the end is `UnexpectedEof`.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes all of `data` at `offset`, growing the blob where needed. A full medium returns `StorageFull`; part of
    /// the data may then have been written.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Makes room for all bytes before `len`: a later write there does not find the medium full. The blob may then have that length, the new
    /// bytes being zeros. A full medium returns `StorageFull`.
    fn allocate(&self, len: u64) -> io::Result<()> {
        if self.len()? < len { self.set_len(len) } else { Ok(()) }
    }

    /// Truncates the blob, or extends it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Returns when everything written so far is durable.
    fn sync(&self) -> io::Result<()>;
}
