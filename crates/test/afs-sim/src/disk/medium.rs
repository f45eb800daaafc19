//! Medium of the key-value store on a simulated disk.

use std::fmt;
use std::io;
use std::sync::Arc;

use afs_kv::{Blob, Medium};

use crate::disk::SimDisk;
use crate::disk::blob::BlobHandle;

/// A set of blobs on a [`SimDisk`], valid until the next crash of its node.
#[derive(Clone)]
pub struct SimMedium {
    pub(crate) disk: SimDisk,
    pub(crate) prefix: String,
    pub(crate) cycle: u64,
}

impl Medium for SimMedium {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Blob>> {
        Ok(Arc::new(BlobHandle::open_durable(&self.disk, format!("{}{name}", self.prefix), self.cycle)?))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.names(&self.prefix, self.cycle)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(&format!("{}{name}", self.prefix), self.cycle)
    }
}

impl fmt::Debug for BlobHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimBlob").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Blob for BlobHandle {
    fn len(&self) -> io::Result<u64> {
        self.length()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read(offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write(offset, data)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.resize(len)
    }

    fn sync(&self) -> io::Result<()> {
        BlobHandle::sync(self)
    }
}
