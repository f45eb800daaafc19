//! A dump in memory: a tool's sink, and a source that can be read again.

use afs_admin::{DumpSink, DumpSource};
use afs_rpc::BoxFuture;
use bytes::Bytes;

/// A dump in memory, read in small pieces.
#[derive(Clone, Default)]
pub struct MemoryDump {
    pub bytes: Vec<u8>,
    at: usize,
}

/// Bytes of a piece: no multiple of any size in a dump.
const PIECE: usize = 999;

impl MemoryDump {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, at: 0 }
    }
}

impl DumpSink for MemoryDump {
    fn write(&mut self, piece: Bytes) -> BoxFuture<'_, Result<(), String>> {
        self.bytes.extend_from_slice(&piece);
        Box::pin(std::future::ready(Ok(())))
    }
}

impl DumpSource for MemoryDump {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, String>> {
        let end = (self.at + PIECE).min(self.bytes.len());
        let piece = Bytes::copy_from_slice(&self.bytes[self.at..end]);
        self.at = end;
        Box::pin(std::future::ready(Ok(Some(piece).filter(|piece| !piece.is_empty()))))
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn rewind(&mut self) -> BoxFuture<'_, Result<bool, String>> {
        self.at = 0;
        Box::pin(std::future::ready(Ok(true)))
    }
}
