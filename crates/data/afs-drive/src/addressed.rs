//! The trait of drives from which clients fetch chunks by signed addresses: those that are object stores.

use std::fmt;
use std::ops::Range;

use crate::chunk::ChunkRef;
use crate::drive::BoxFuture;

/// Signs addresses by which clients fetch whole chunks from the store of a drive, past its file server.
pub trait Addressed: Send + Sync + 'static {
    /// Whether requests to the store go without encryption.
    fn is_clear(&self) -> bool;

    /// Whether the store has the object of a chunk, as far as memory tells: not one that waits to be stored, or was discarded.
    fn has(&self, chunk: ChunkRef) -> bool;

    /// An address by which exactly this chunk can be fetched for so many seconds, by the holder of the address; `None` if none can be
    /// signed now.
    fn address(&self, chunk: ChunkRef, seconds: u32) -> BoxFuture<Option<ChunkAddress>>;
}

/// Where a chunk can be fetched for a time. The address is not printed: it is a permission.
#[derive(Clone, PartialEq, Eq)]
pub struct ChunkAddress {
    /// Of HTTP(S). Its signature covers the request's header `Range`.
    pub address: String,
    /// The bytes of the object that are the chunk: what the request names in that header.
    pub range: Range<u64>,
}

impl fmt::Debug for ChunkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkAddress({:?})", self.range)
    }
}
