//! Table of the chunks whose space could not be freed, because the medium failed: it is tried again until it is free.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::chunk::ChunkRef;

/// Pause before chunks are freed again.
pub(crate) const PAUSE: Duration = Duration::from_secs(60);
/// Most chunks in the table. What exceeds it waits for a sweep.
const CHUNKS_MAX: usize = 65_536;

/// How much of a chunk is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    /// It may have been freed by another call meanwhile, which its header shows.
    Whole,
    /// Its write failed, so that nobody else knows it and its header says nothing.
    Part,
}

#[derive(Default)]
pub(crate) struct Unfreed {
    chunks: BTreeMap<ChunkRef, Left>,
    /// Whether a task tries again.
    is_retried: bool,
}

impl Unfreed {
    /// Returns whether a task has to be started.
    pub fn keep(&mut self, chunk: ChunkRef, left: Left) -> bool {
        if self.chunks.len() >= CHUNKS_MAX {
            return false;
        }
        self.chunks.entry(chunk).or_insert(left);
        !std::mem::replace(&mut self.is_retried, true)
    }

    pub fn get(&self, chunk: ChunkRef) -> Option<Left> {
        self.chunks.get(&chunk).copied()
    }

    pub fn remove(&mut self, chunk: ChunkRef) {
        self.chunks.remove(&chunk);
    }

    /// The chunks of a segment were freed, or counted as free.
    pub fn forget_segment(&mut self, segment: u64) {
        self.chunks.retain(|chunk, _| chunk.id.parts().0 != segment);
    }

    pub fn all(&self) -> Vec<ChunkRef> {
        self.chunks.keys().copied().collect()
    }

    /// Ends the task if there is nothing to do. Returns whether it did.
    pub fn ends(&mut self) -> bool {
        self.is_retried = !self.chunks.is_empty();
        self.chunks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::ChunkId;

    #[test]
    fn chunks_are_bounded_and_what_is_there_stays() {
        let mut unfreed = Unfreed::default();
        let chunk = |n: usize| ChunkRef { id: ChunkId::from_parts(1, n as u64), len: 1, crc: 0 };
        for n in 0..2 * CHUNKS_MAX {
            unfreed.keep(chunk(n), Left::Whole);
        }
        assert_eq!(unfreed.all().len(), CHUNKS_MAX);
        assert_eq!(unfreed.get(chunk(0)), Some(Left::Whole));
        assert_eq!(unfreed.get(chunk(CHUNKS_MAX)), None, "the sweep frees it");
    }
}
