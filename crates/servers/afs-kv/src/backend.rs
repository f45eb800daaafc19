//! Storage backend of redb on a blob. Where the medium is full it grows into the spare.

use std::io;
use std::sync::Arc;

use redb::StorageBackend;

use crate::medium::Blob;
use crate::spare::{self, Spare};

#[derive(Debug)]
pub(crate) struct BlobBackend {
    pub(crate) blob: Arc<dyn Blob>,
    /// `None` for an index that is made apart.
    pub(crate) spare: Option<Arc<Spare>>,
}

impl BlobBackend {
    /// Runs a change that may need room for `bytes` bytes, until it has it or nothing can be given up.
    fn with_spare(&self, bytes: u64, change: impl Fn() -> io::Result<()>) -> io::Result<()> {
        loop {
            match (change(), &self.spare) {
                (Err(error), Some(spare)) if spare::is_full(&error) && spare.give(bytes) => {}
                (result, _) => return result,
            }
        }
    }
}

impl StorageBackend for BlobBackend {
    fn len(&self) -> Result<u64, io::Error> {
        self.blob.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        self.blob.read_at(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        let growth = len.saturating_sub(self.blob.len()?);
        self.with_spare(growth, || self.blob.set_len(len))
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        self.blob.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.with_spare(data.len() as u64, || self.blob.write_at(offset, data))
    }
}
