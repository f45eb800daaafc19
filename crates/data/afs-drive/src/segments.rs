//! Segment table: the segment being appended to, and the live bytes of each.

use std::collections::{BTreeMap, BTreeSet};

use crate::chunk::ChunkId;
use crate::error::DriveError;
use crate::header::footprint;
use crate::unfreed::Unfreed;
use afs_env::sync::oneshot;

/// The drive's state in memory; rebuilt by opening and sweeping.
///
/// Invariants: segments before `first` are from earlier runs and never written again. `live` counts the footprints of
/// a segment's chunks, those being written included; a segment without an entry is from an earlier run and was not
/// swept yet, so that it is unknown whether it is dead.
pub(crate) struct Segments {
    first: u64,
    current: u64,
    offset: u64,
    limit: u64,
    live: BTreeMap<u64, u64>,
    /// Number of chunks of a segment that are being written or discarded now.
    in_use: BTreeMap<u64, usize>,
    /// Chunks that are being discarded now: each by one call, so that it is subtracted once.
    discarded: BTreeSet<ChunkId>,
    /// Segments that a request sweeps now: none of them is in use.
    swept: BTreeSet<u64>,
    pub(crate) unfreed: Unfreed,
    pub(crate) flush: Flush,
}

/// State of the group flush: the calls that wait for it.
#[derive(Default)]
pub(crate) struct Flush {
    pub(crate) dirty: BTreeSet<u64>,
    pub(crate) waiting: Vec<oneshot::Sender<Result<(), DriveError>>>,
    pub(crate) running: bool,
    pub(crate) needs_reopen: bool,
}

impl Segments {
    /// Begins a new segment after all existing ones: the end of the last one, which a crash may have left incomplete,
    /// is never appended to.
    pub(crate) fn new(existing: &[u64], limit: u64) -> Self {
        let first = existing.last().map_or(1, |last| last + 1);
        let (live, in_use, discarded, swept) = Default::default();
        let (unfreed, flush) = Default::default();
        Self { first, current: first, offset: 0, limit, live, in_use, discarded, swept, unfreed, flush }
    }

    /// Continues with a segment after this one.
    pub(crate) fn continue_after(&mut self, last: u64) {
        if last < self.current {
            return;
        }
        if self.live.is_empty() && self.offset == 0 {
            self.first = last + 1;
        }
        (self.current, self.offset) = (last + 1, 0);
    }

    /// Begins a segment, unless the present one is empty, and returns its number.
    pub(crate) fn begin_segment(&mut self) -> u64 {
        if self.offset > 0 {
            (self.current, self.offset) = (self.current + 1, 0);
        }
        self.current
    }

    /// The segment that is written to, or will be.
    pub(crate) fn current(&self) -> u64 {
        self.current
    }

    /// The first segment of this run.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Begins to discard a chunk; false while another call does, or while its segment is swept.
    pub(crate) fn begin_discard(&mut self, chunk: ChunkId) -> bool {
        let segment = chunk.parts().0;
        let may_begin = !self.swept.contains(&segment) && self.discarded.insert(chunk);
        if may_begin {
            *self.in_use.entry(segment).or_default() += 1;
        }
        may_begin
    }

    pub(crate) fn end_discard(&mut self, chunk: ChunkId) {
        self.discarded.remove(&chunk);
        self.end_write(chunk);
    }

    /// Ends what [`Segments::allocate`] began.
    pub(crate) fn end_write(&mut self, chunk: ChunkId) {
        let segment = chunk.parts().0;
        if let Some(count) = self.in_use.get_mut(&segment) {
            *count -= 1;
            if *count == 0 {
                self.in_use.remove(&segment);
            }
        }
    }

    /// Begins a sweep of the segment of an id; false while it is in use or swept.
    pub(crate) fn begin_sweep(&mut self, id: ChunkId) -> bool {
        let segment = id.parts().0;
        !self.in_use.contains_key(&segment) && self.swept.insert(segment)
    }

    pub(crate) fn end_sweep(&mut self, id: ChunkId) {
        self.swept.remove(&id.parts().0);
    }

    /// Allocates the space of a chunk of this length. The segment is in use until the chunk is written.
    pub(crate) fn allocate(&mut self, len: u32) -> ChunkId {
        let size = footprint(len);
        if self.offset > 0 && self.offset + size > self.limit {
            self.current += 1;
            self.offset = 0;
        }
        let id = ChunkId::from_parts(self.current, self.offset);
        self.offset += size;
        *self.live.entry(self.current).or_default() += size;
        *self.in_use.entry(self.current).or_default() += 1;
        id
    }

    /// Subtracts a chunk from the live bytes; true when its segment is dead and can be removed.
    pub(crate) fn release(&mut self, segment: u64, len: u32) -> bool {
        let Some(live) = self.live.get_mut(&segment) else { return false };
        *live = live.saturating_sub(footprint(len));
        let dead = *live == 0 && segment != self.current;
        if dead {
            self.live.remove(&segment);
            self.flush.dirty.remove(&segment);
        }
        dead
    }

    /// Whether a segment is from an earlier run.
    pub(crate) fn is_old(&self, segment: u64) -> bool {
        segment < self.first
    }

    /// Forgets a segment that was removed as a whole.
    pub(crate) fn forget(&mut self, segment: u64) {
        self.live.remove(&segment);
        self.flush.dirty.remove(&segment);
        self.unfreed.forget_segment(segment);
    }

    /// Records the live bytes that a sweep found in a segment.
    pub(crate) fn learn(&mut self, segment: u64, live: u64) {
        self.live.insert(segment, live);
        self.unfreed.forget_segment(segment);
    }
}
