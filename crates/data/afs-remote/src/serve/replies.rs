//! Replies of a drive: bytes with their checksums, lists of ranges, reports.

use std::collections::VecDeque;

use afs_datapath::frame::{ChunkReply, RANGE_LEN, SUM_LEN};
use afs_datapath::session::{Failure, Opened, Pieces};
use afs_drive::{ChunkId, ChunkRef, SweepReport};
use afs_env::BoxFuture;
use afs_env::sync::OwnedSemaphorePermit;
use bytes::{Bytes, BytesMut};

/// Bytes in memory, with the room that they have there.
struct InMemory {
    parts: VecDeque<Bytes>,
    _room: Option<OwnedSemaphorePermit>,
}

impl Pieces for InMemory {
    fn next(&mut self, most: usize) -> BoxFuture<'_, Result<Bytes, Failure>> {
        let Some(first) = self.parts.front_mut() else { return Box::pin(async { Err(Failure::Io) }) };
        let piece = first.split_to(most.min(first.len()));
        if first.is_empty() {
            self.parts.pop_front();
        }
        Box::pin(async move { Ok(piece) })
    }
}

fn opened(whole: u64, parts: impl IntoIterator<Item = Bytes>, room: Option<OwnedSemaphorePermit>) -> Opened {
    let parts: VecDeque<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let length = parts.iter().map(|part| part.len() as u64).sum();
    Opened { file_length: whole, length, pieces: Box::new(InMemory { parts, _room: room }) }
}

/// The checksums of all pieces of a chunk, then the pieces that were read.
pub(super) fn pieces(chunk: ChunkRef, read: afs_drive::Pieces, room: OwnedSemaphorePermit) -> Opened {
    let mut sums = BytesMut::with_capacity(SUM_LEN * read.sums.len());
    read.sums.iter().for_each(|sum| sums.extend_from_slice(&sum.to_be_bytes()));
    opened(chunk.len.into(), [sums.freeze(), read.bytes], Some(room))
}

/// First and last id of each range.
pub(super) fn ranges(ranges: &[(ChunkId, ChunkId)]) -> Opened {
    let mut bytes = BytesMut::with_capacity(RANGE_LEN * ranges.len());
    for (first, last) in ranges {
        bytes.extend_from_slice(&first.to_bytes());
        bytes.extend_from_slice(&last.to_bytes());
    }
    opened(0, [bytes.freeze()], None)
}

pub(super) fn swept(report: &SweepReport) -> ChunkReply {
    ChunkReply::Swept {
        removed: report.removed > 0,
        missing: report.missing.len() as u32,
        one_missing: report.missing.first().copied().unwrap_or(ChunkId::MIN),
    }
}
