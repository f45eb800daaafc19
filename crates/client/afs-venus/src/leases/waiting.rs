//! Count of the bytes that wait in the journals of all leases: it bounds the memory of the mount.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes with which all journals are full.
const ALL_MAX: usize = 32 << 20;

/// Bytes that wait in one journal, and the number of those in all.
#[derive(Default)]
pub(crate) struct Waiting {
    bytes: usize,
    all: Arc<AtomicUsize>,
}

impl Waiting {
    /// Of a journal in which nothing waits yet.
    pub fn beside(all: &Arc<AtomicUsize>) -> Waiting {
        Waiting { bytes: 0, all: all.clone() }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether all journals have room for so many bytes more.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.all.load(Ordering::SeqCst).saturating_add(bytes) <= ALL_MAX
    }

    pub fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.all.fetch_add(bytes, Ordering::SeqCst);
    }

    pub fn remove(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.all.fetch_sub(bytes, Ordering::SeqCst);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}
