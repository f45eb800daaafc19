//! Storage backend of redb on a blob.

use std::io;
use std::sync::Arc;

use redb::StorageBackend;

use crate::medium::Blob;

#[derive(Debug)]
pub(crate) struct BlobBackend(pub(crate) Arc<dyn Blob>);

impl StorageBackend for BlobBackend {
    fn len(&self) -> Result<u64, io::Error> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        self.0.read_at(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.0.write_at(offset, data)
    }
}
