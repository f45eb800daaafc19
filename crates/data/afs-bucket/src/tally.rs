//! Counts of the live chunks of packs, from which follows when a pack can be deleted.

use std::collections::{BTreeMap, BTreeSet};

use afs_drive::{ChunkId, ChunkRef};

use crate::names::PackId;

/// What is known of the chunks in packs. An entry takes about 20 bytes: 2.5 MiB for a TiB of full packs.
///
/// The entry of a pack is the sum of its live chunks' weights (64 bits, from their places). It is 0 when they have been discarded,
/// each once. A discarded chunk that was not one of them makes it another number: the pack then waits for a sweep, and no
/// live chunk is deleted.
///
/// A pack without an entry is left for a sweep: it is of an earlier run and was not swept yet, or the bounds on memory were
/// reached. The marks of dead chunks make discarding a chunk twice harmless.
pub(crate) struct Tally {
    live: BTreeMap<PackId, u64>,
    dead: BTreeSet<ChunkId>,
    /// The pack whose live chunks are being looked up, with the chunks discarded meanwhile.
    swept: Option<(PackId, BTreeSet<ChunkId>)>,
    packs_max: usize,
    dead_max: usize,
}

impl Default for Tally {
    fn default() -> Self {
        Self::with_bounds(PACKS_MAX, DEAD_MAX)
    }
}

impl Tally {
    pub(crate) fn with_bounds(packs_max: usize, dead_max: usize) -> Self {
        Self { live: BTreeMap::new(), dead: BTreeSet::new(), swept: None, packs_max, dead_max }
    }

    /// A chunk was added to a pack of this run; `first` if it is the pack's first.
    pub(crate) fn born(&mut self, chunk: ChunkId, first: bool) {
        let pack = PackId::of(chunk);
        if first && self.live.len() < self.packs_max {
            self.live.insert(pack, 0);
        }
        if let Some(live) = self.live.get_mut(&pack) {
            *live = live.wrapping_add(weight(chunk));
        }
    }

    /// A chunk was discarded; true if it was the last live one of its pack, which has no entry from now on.
    pub(crate) fn discarded(&mut self, chunk: ChunkId) -> bool {
        let pack = PackId::of(chunk);
        if let Some((swept, dead)) = &mut self.swept
            && *swept == pack
        {
            dead.insert(chunk);
        }
        let Some(live) = self.live.get_mut(&pack).filter(|_| !self.dead.contains(&chunk)) else {
            return false;
        };
        *live = live.wrapping_sub(weight(chunk));
        if *live == 0 {
            self.forget(pack);
            return true;
        }
        if self.dead.len() < self.dead_max {
            self.dead.insert(chunk);
        } else {
            self.forget(pack);
        }
        false
    }

    /// Whether a chunk is known to be dead.
    pub(crate) fn is_dead(&self, chunk: ChunkId) -> bool {
        self.dead.contains(&chunk)
    }

    /// Removes what is known of a pack.
    pub(crate) fn forget(&mut self, pack: PackId) {
        self.live.remove(&pack);
        let (first, last) = pack.chunks();
        let marks: Vec<_> = self.dead.range(first..=last).copied().collect();
        marks.iter().for_each(|chunk| _ = self.dead.remove(chunk));
    }

    /// Begins to note the chunks of a pack that are discarded while its live chunks are being looked up.
    pub(crate) fn begin_sweep(&mut self, pack: PackId) {
        self.swept = Some((pack, BTreeSet::new()));
    }

    /// Takes the live chunks that were found since [`Tally::begin_sweep`]; true if none is left by now.
    pub(crate) fn end_sweep(&mut self, pack: PackId, found: &[ChunkRef]) -> bool {
        let discarded = self.swept.take().map_or_else(BTreeSet::new, |(_, discarded)| discarded);
        self.forget(pack);
        let mut left =
            found.iter().map(|chunk| chunk.id).filter(|chunk| !discarded.contains(chunk)).peekable();
        let is_dead = left.peek().is_none();
        if !is_dead && self.live.len() < self.packs_max {
            self.live.insert(pack, left.map(weight).fold(0, u64::wrapping_add));
            let marks = found.iter().map(|chunk| chunk.id).filter(|chunk| discarded.contains(chunk));
            self.dead.extend(marks);
        }
        is_dead
    }
}

/// A number that spreads the place of a chunk over 64 bits (the finalizer of SplitMix64), so that no other few places have the
/// same sum.
fn weight(chunk: ChunkId) -> u64 {
    let mut mixed = chunk.parts().1.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Packs that are counted: 8 TiB in full packs.
const PACKS_MAX: usize = 1 << 20;
/// Dead chunks that are marked, each about 25 bytes.
const DEAD_MAX: usize = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;

    const PACK: PackId = PackId(7);

    fn reference(offset: u32) -> ChunkRef {
        ChunkRef { id: PACK.chunk(offset), len: 1, crc: 0 }
    }

    #[test]
    fn a_pack_dies_with_its_last_chunk_and_once() {
        let mut tally = Tally::default();
        for (n, offset) in [24, 40, 56].into_iter().enumerate() {
            tally.born(PACK.chunk(offset), n == 0);
        }
        assert!(!tally.discarded(PACK.chunk(24)) && !tally.discarded(PACK.chunk(24)));
        assert!(tally.is_dead(PACK.chunk(24)) && !tally.is_dead(PACK.chunk(40)));
        assert!(!tally.discarded(PACK.chunk(40)));
        assert!(tally.discarded(PACK.chunk(56)));
        assert!(!tally.discarded(PACK.chunk(56)));
    }

    #[test]
    fn what_is_discarded_during_a_sweep_counts_once() {
        let mut tally = Tally::default();
        assert!(!tally.discarded(PACK.chunk(24)), "a pack that was not swept is not known");
        tally.begin_sweep(PACK);
        tally.discarded(PACK.chunk(24));
        // Its row had been deleted when the live ones were looked up.
        tally.discarded(PACK.chunk(72));
        assert!(!tally.end_sweep(PACK, &[reference(24), reference(40)]));
        assert!(!tally.discarded(PACK.chunk(24)));
        assert!(tally.discarded(PACK.chunk(40)));
        tally.begin_sweep(PACK);
        tally.discarded(PACK.chunk(40));
        assert!(tally.end_sweep(PACK, &[reference(40)]));
    }

    #[test]
    fn an_unknown_chunk_deletes_no_pack() {
        let mut tally = Tally::default();
        tally.begin_sweep(PACK);
        assert!(!tally.end_sweep(PACK, &[reference(24), reference(40)]));
        assert!(!tally.discarded(PACK.chunk(72)) && !tally.discarded(PACK.chunk(24)));
        assert!(!tally.discarded(PACK.chunk(40)), "the next sweep finds it");
    }

    #[test]
    fn beyond_its_bounds_a_pack_waits_for_the_sweep() {
        let mut tally = Tally::with_bounds(1, 1);
        tally.born(PACK.chunk(24), true);
        tally.born(PackId(8).chunk(24), true);
        assert!(!tally.discarded(PackId(8).chunk(24)));
        for offset in [40, 56] {
            tally.born(PACK.chunk(offset), false);
        }
        assert!(!tally.discarded(PACK.chunk(24)));
        assert!(!tally.discarded(PACK.chunk(40)), "a second mark is over the bound");
        assert!(!tally.discarded(PACK.chunk(56)), "and the pack is no longer known");
        assert!(tally.dead.is_empty() && tally.live.is_empty());
    }
}
