//! Spare: a blob whose room the index takes while the medium is full, so that checkpoints end and rows can be removed.
//!
//! It is given up piece by piece, where a write of the index finds no room: what is free for an instant only could be taken by others.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::medium::{Blob, Medium};

/// Name of the blob.
pub(crate) const NAME: &str = "spare";

/// Room on the medium that is kept for the index.
#[derive(Debug)]
pub(crate) struct Spare {
    blob: Arc<dyn Blob>,
    /// Bytes that it has while no turn is long.
    base: u64,
    /// Bytes that it has.
    len: Mutex<u64>,
    /// Some was given up and not yet replaced.
    is_short: AtomicBool,
    /// Some was given up since the last checkpoint ended.
    was_taken: AtomicBool,
}

impl Spare {
    /// Opens the blob. Where there is no room for it, it is as long as it was. `log_bytes`: those of a whole turn.
    pub(crate) fn open(medium: &dyn Medium, log_bytes: u64) -> io::Result<Self> {
        let blob = medium.open(NAME)?;
        let len = Mutex::new(blob.len()?);
        let base = BASE.min(log_bytes / 4);
        let spare =
            Self { blob, base, len, is_short: AtomicBool::new(false), was_taken: AtomicBool::new(false) };
        spare.cover(base);
        Ok(spare)
    }

    /// Whether the checkpoint of a turn with records up to `end` has room, which is made if the medium has it.
    pub(crate) fn covers_turn(&self, end: u64) -> bool {
        // In strides, since it is asked before each batch.
        self.cover(self.base + 2 * end.next_multiple_of(STRIDE))
    }

    /// Gives up room for a write of `bytes` bytes. False if there is not as much left.
    pub(crate) fn give(&self, bytes: u64) -> bool {
        let mut len = self.len.lock();
        let left = len.saturating_sub(bytes.next_multiple_of(PIECE));
        if *len < bytes.max(1) || self.blob.set_len(left).is_err() {
            return false;
        }
        *len = left;
        self.is_short.store(true, Ordering::Relaxed);
        self.was_taken.store(true, Ordering::Relaxed);
        true
    }

    /// Whether changes that need more room are to be refused, which is asked before each batch: what is left is for changes that free some.
    pub(crate) fn is_short(&self) -> bool {
        let is_short = self.is_short.load(Ordering::Relaxed) && !self.cover(self.base);
        self.is_short.store(is_short, Ordering::Relaxed);
        is_short
    }

    /// A checkpoint has ended. Where it took nothing, the index has room in itself, also for other changes while half of the spare is left.
    pub(crate) fn checkpoint_ended(&self) {
        let mut len = self.len.lock();
        if *len > self.base && self.blob.set_len(self.base).is_ok() {
            *len = self.base;
        }
        if !self.was_taken.swap(false, Ordering::Relaxed) && *len >= self.base / 2 {
            self.is_short.store(false, Ordering::Relaxed);
        }
    }

    fn cover(&self, bytes: u64) -> bool {
        let mut len = self.len.lock();
        if *len < bytes && self.blob.allocate(bytes).and_then(|()| self.blob.set_len(bytes)).is_ok() {
            *len = bytes;
        }
        *len >= bytes
    }
}

/// Whether an error says that the medium is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Bytes of the spare, if a turn of the log has as many or more: a short turn, and what the pages take on whose rows it changes.
const BASE: u64 = 4 << 20;
/// Bytes that are given up at a time, at least.
const PIECE: u64 = 64 << 10;
const STRIDE: u64 = 512 << 10;
