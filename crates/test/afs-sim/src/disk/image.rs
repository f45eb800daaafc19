//! Crash image of a blob: which unsynced writes survive a power failure.

use crate::disk::blob::{BlobState, Pending, apply};
use crate::rng::SimRng;

/// Fate of unsynced writes in a crash. Each occurs on some real disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// All of them had reached the disk.
    Kept,
    /// None of them had.
    Dropped,
    /// Each write by itself: kept, dropped or torn.
    Mixed,
}

impl Mode {
    pub(crate) fn draw(rng: &mut SimRng) -> Self {
        match rng.below(6) {
            0 => Mode::Kept,
            1 => Mode::Dropped,
            _ => Mode::Mixed,
        }
    }
}

/// Replaces the blob's contents by those after the crash. A blob without `exists_durably` is deleted.
pub(crate) fn settle(blob: &mut BlobState, mode: Mode, rng: &mut SimRng) {
    blob.exists_durably |= match mode {
        Mode::Kept => true,
        Mode::Dropped => false,
        Mode::Mixed => rng.chance(500_000),
    };
    for change in std::mem::take(&mut blob.pending) {
        match mode {
            Mode::Kept => apply(&mut blob.durable, &change),
            Mode::Dropped => {}
            Mode::Mixed => settle_one(&mut blob.durable, &change, rng),
        }
    }
    blob.now.clone_from(&blob.durable);
}

fn settle_one(durable: &mut Vec<u8>, change: &Pending, rng: &mut SimRng) {
    match (rng.below(4), change) {
        (0, _) => {}
        (1, Pending::Write { offset, data }) => tear(durable, *offset, data, rng),
        (2, Pending::Write { offset, data }) => grow_only(durable, offset + data.len()),
        _ => apply(durable, change),
    }
}

/// Some sectors of the write are new, the others old; the boundary inside a sector may be at any byte.
fn tear(durable: &mut Vec<u8>, offset: usize, data: &[u8], rng: &mut SimRng) {
    let mut at = 0;
    while at < data.len() {
        let step = SECTOR.min(data.len() - at);
        let new = match rng.below(4) {
            0 => 0,
            1 => rng.index(step),
            _ => step,
        };
        if new > 0 {
            let piece = Pending::Write { offset: offset + at, data: data[at..at + new].to_vec() };
            apply(durable, &piece);
        }
        at += step;
    }
}

/// The length reached the disk and the data did not: zeros.
fn grow_only(durable: &mut Vec<u8>, len: usize) {
    if len > durable.len() {
        durable.resize(len, 0);
    }
}

const SECTOR: usize = 512;
