//! File of a crash disk: its durable bytes, and the changes that a crash keeps in any order, torn at sectors.

use super::Rng;
use crate::disk::blob::{Pending, apply};

#[derive(Clone, Default)]
pub(super) struct File {
    pub(super) durable: Vec<u8>,
    pub(super) current: Vec<u8>,
    pub(super) pending: Vec<Pending>,
    /// Which of its blocks have room on the disk: those that were written or allocated, and not the holes.
    blocks: Vec<bool>,
}

impl File {
    /// Bytes that it takes on the disk.
    pub(super) fn used(&self) -> u64 {
        self.blocks.iter().filter(|has_room| **has_room).count() as u64 * BLOCK
    }

    /// Bytes that a write of these bytes would take in addition.
    pub(super) fn missing(&self, from: u64, to: u64) -> u64 {
        let blocks = from / BLOCK..to.div_ceil(BLOCK);
        let has_room = |block: &u64| self.blocks.get(*block as usize).copied().unwrap_or(false);
        blocks.filter(|block| !has_room(block)).count() as u64 * BLOCK
    }

    /// Takes them.
    pub(super) fn take(&mut self, from: u64, to: u64) {
        let blocks = (from / BLOCK) as usize..to.div_ceil(BLOCK) as usize;
        self.blocks.resize(self.blocks.len().max(blocks.end), false);
        self.blocks[blocks].fill(true);
    }

    /// Gives up what is behind a length.
    pub(super) fn cut(&mut self, len: u64) {
        self.blocks.truncate(len.div_ceil(BLOCK) as usize);
    }

    pub(super) fn image(&self, rng: &mut Rng) -> Self {
        let mut bytes = self.durable.clone();
        let mut pending = self.pending.clone();
        if rng.chance(50) {
            for at in (1..pending.len()).rev() {
                pending.swap(at, rng.below(at as u64 + 1) as usize);
            }
        }
        // Sometimes everything was kept, sometimes nothing.
        let kept = [0, 10, 50, 90, 100][rng.below(5) as usize];
        for change in &pending {
            apply_in_part(change, &mut bytes, kept, rng);
        }
        let blocks = vec![true; (bytes.len() as u64).div_ceil(BLOCK) as usize];
        Self { durable: bytes.clone(), current: bytes, pending: Vec::new(), blocks }
    }
}

/// Applies a change, or of a write some sectors, with a probability in percent for each.
fn apply_in_part(change: &Pending, bytes: &mut Vec<u8>, kept: u64, rng: &mut Rng) {
    match change {
        Pending::SetLen(_) => {
            if rng.chance(kept) {
                apply(bytes, change);
            }
        }
        Pending::Write { offset, data } => {
            let mut at = 0;
            while at < data.len() {
                let sector_end = ((offset + at) / SECTOR + 1) * SECTOR - offset;
                let end = sector_end.min(data.len());
                if rng.chance(kept) {
                    apply(bytes, &Pending::Write { offset: offset + at, data: data[at..end].to_vec() });
                }
                at = end;
            }
        }
    }
}

const SECTOR: usize = 512;
const BLOCK: u64 = 4096;
