//! Reading of chunks on a remote drive, with every byte verified here.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use afs_datapath::frame::{ChunkRequest, SUM_LEN};
use afs_datapath::session::{Arriving, Error, Failure, chunk_pieces};
use afs_drive::{ChunkRef, DriveError, Pieces};
use bytes::{Bytes, BytesMut};

use crate::connection::Open;
use crate::drive::RemoteDrive;

/// Bytes that the drive may send before more are wanted.
const CREDIT: u32 = 1 << 20;

/// Reads a range of a chunk: whole pieces come, with the checksums of all pieces, which give the sum in the reference.
pub(crate) async fn read(
    drive: &RemoteDrive,
    chunk: ChunkRef,
    range: Range<u32>,
) -> Result<Bytes, DriveError> {
    let covering = Pieces::covering(chunk.len, &range)?;
    let length = SUM_LEN * Pieces::count(chunk.len) + covering.len();
    let what = ChunkRequest::Read { chunk, start: range.start, end: range.end, credit: CREDIT };
    let wait = drive.connection().options().wait;
    let read = drive.attempts(wait, |open| fetch(open, what.clone(), length)).await?;
    match read {
        Fetched::Bytes(bytes) => chunk_pieces(chunk, bytes).verified(chunk, range),
        Fetched::OtherLength => Err(drive.wrong("a chunk of another length")),
        Fetched::Failed(Failure::Damaged) => Err(DriveError::Damaged { chunk: chunk.id }),
        Fetched::Failed(failure) => {
            let error = Arc::new(io::Error::other(failure.to_string()));
            Err(DriveError::Unreadable { chunk: chunk.id, error })
        }
    }
}

/// How an attempt ended that no other is to follow.
enum Fetched {
    Bytes(Bytes),
    OtherLength,
    /// The drive could not read the chunk.
    Failed(Failure),
}

async fn fetch(open: Open, what: ChunkRequest, length: usize) -> Result<Fetched, Error> {
    let failed = |error: Error| match error {
        Error::Failed(failure @ (Failure::Damaged | Failure::Io)) => Ok(Fetched::Failed(failure)),
        other => Err(other),
    };
    let arriving = match open.client.fetch(&open.handle, what).await {
        Ok(arriving) => arriving,
        Err(error) => return failed(error),
    };
    if arriving.length() != length as u64 {
        return Ok(Fetched::OtherLength);
    }
    gather(arriving).await.map_or_else(failed, |bytes| Ok(Fetched::Bytes(bytes)))
}

/// All bytes of a reply, whose length was checked.
pub(crate) async fn gather(mut arriving: Arriving) -> Result<Bytes, Error> {
    let mut bytes = BytesMut::new();
    while let Some(piece) = arriving.next().await? {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.freeze())
}
