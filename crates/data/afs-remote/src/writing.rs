//! Writing and discarding of chunks on a remote drive.

use std::time::Duration;

use afs_datapath::frame::{CHUNKS_MAX, ChunkReply, ChunkRequest};
use afs_drive::{BLOCK, BoxFuture, ChunkId, ChunkRef, DriveError, MAX_CHUNK_LEN, Unclaimed};
use bytes::Bytes;

use crate::drive::RemoteDrive;
use crate::options::SEGMENT_BYTES;

/// Writes a chunk. If the reply is lost, the bytes are written again as another chunk, and the first one is found by the
/// next sweep.
pub(crate) fn write(drive: &RemoteDrive, data: Bytes) -> BoxFuture<Result<ChunkRef, DriveError>> {
    if data.is_empty() || data.len() > MAX_CHUNK_LEN {
        return Box::pin(async move { Err(DriveError::Length { len: data.len() as u64 }) });
    }
    let own = drive.clone();
    let written = drive.start(async move {
        let chunk = give(&own, data).await?;
        Ok(Unclaimed::new(chunk, own))
    });
    Box::pin(async move { written.await?.claim() })
}

async fn give(drive: &RemoteDrive, data: Bytes) -> Result<ChunkRef, DriveError> {
    let (length, crc) = (data.len() as u32, crc32c::crc32c(&data));
    let wait = drive.connection().options().wait;
    match drive.perform(ChunkRequest::Write { length }, data, wait).await? {
        ChunkReply::Written { chunk, usage } => {
            drive.connection().set_usage(usage);
            let is_new = drive.connection().mark().is_some_and(|mark| chunk.id >= mark);
            if (chunk.len, chunk.crc) != (length, crc) || !is_new || !is_place(chunk.id) {
                return Err(drive.wrong("the reference of another chunk"));
            }
            Ok(chunk)
        }
        _ => Err(drive.wrong("another reply to a write")),
    }
}

/// Whether a chunk can begin there. So a segment has at most [`LIVE_MAX`](afs_datapath::frame::LIVE_MAX) chunks, and what the file
/// server has to gather of one in a sweep is bounded, whatever the drive says.
pub(crate) fn is_place(id: ChunkId) -> bool {
    let (_, offset) = id.parts();
    offset < SEGMENT_BYTES && offset.is_multiple_of(BLOCK)
}

/// Discards chunks, as many in one request as it can have.
pub(crate) async fn discard(drive: &RemoteDrive, chunks: &[ChunkRef]) -> Result<(), DriveError> {
    for chunks in chunks.chunks(CHUNKS_MAX) {
        let what = ChunkRequest::Discard { chunks: chunks.to_vec() };
        match drive.perform(what, Bytes::new(), Duration::ZERO).await? {
            ChunkReply::Done => {}
            _ => return Err(drive.wrong("another reply to a discard")),
        }
    }
    Ok(())
}
