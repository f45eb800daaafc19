//! Counter of the bytes that stores in progress hold in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};

/// Bytes beyond which stores write what they have to the drive instead of waiting for a whole slot: 64 MiB.
pub(crate) const GATHERED_MAX: usize = 64 << 20;

/// The counter of one volume store.
#[derive(Default)]
pub(crate) struct Gathering(AtomicUsize);

impl Gathering {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counted bytes of one store in progress.
pub(crate) struct Gathered {
    bytes: BytesMut,
    all: Arc<Gathering>,
}

impl Gathered {
    pub(crate) fn new(all: Arc<Gathering>) -> Self {
        Self { bytes: BytesMut::new(), all }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds bytes; returns whether all stores together exceed the bound.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        self.bytes.extend_from_slice(bytes);
        let before = self.all.0.fetch_add(bytes.len(), Ordering::Relaxed);
        before + bytes.len() > GATHERED_MAX
    }

    pub(crate) fn take(&mut self) -> Bytes {
        self.all.0.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        self.bytes.split().freeze()
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}
