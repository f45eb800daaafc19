//! Sink of a fetch that writes to memory.

use bytes::Bytes;

use crate::cache::CacheIo;
use crate::error::{ErrorKind, VenusError};
use crate::transfer::Sink;

/// Bytes in memory, up to a limit.
pub(crate) struct MemorySink {
    bytes: Vec<u8>,
    max: u64,
}

impl MemorySink {
    /// Accepts at most `max` bytes.
    pub fn new(max: u64) -> Self {
        MemorySink { bytes: Vec::new(), max }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Sink for MemorySink {
    fn begin(&mut self, length: u64) {
        self.bytes.clear();
        self.bytes.reserve_exact(length.min(self.max) as usize);
    }

    fn put(&mut self, parts: Vec<Bytes>) -> CacheIo<()> {
        let more: usize = parts.iter().map(Bytes::len).sum();
        if (self.bytes.len() + more) as u64 > self.max {
            return CacheIo::done(Err(VenusError::new(ErrorKind::Protocol, "FetchData")));
        }
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        CacheIo::done(Ok(()))
    }
}
