//! Claims of chunks that clients staged on a remote drive.

use afs_datapath::capability::{ClaimId, StagingTag};
use afs_datapath::frame::{ChunkReply, ChunkRequest, STAGED_CHUNKS_MAX};
use afs_datapath::session::Failure;
use afs_drive::{ChunkId, ChunkRef, DriveError, StagedChunks};
use afs_env::EnvExt;
use bytes::{Bytes, BytesMut};

use crate::drive::RemoteDrive;
use crate::writing::is_place;

/// Whether the drive is there. What is staged after this is behind the mark, so that it can be claimed.
pub(crate) async fn takes_staged(drive: &RemoteDrive) -> bool {
    drive.connection().open().await.is_ok()
}

/// Claims chunks by one number, however often that takes. If no reply comes, the drive forgets them after their time, or has given
/// them and the next sweep frees them.
pub(crate) async fn claim(drive: &RemoteDrive, staged: StagedChunks) -> Result<(), DriveError> {
    let StagedChunks { tag, chunks } = staged;
    let count = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
    if count > STAGED_CHUNKS_MAX || !chunks.iter().all(|chunk| is_place(chunk.id)) {
        return Err(DriveError::NotStaged);
    }
    let Some(oldest) = chunks.iter().map(|chunk| chunk.id).min() else { return Ok(()) };
    let claim = ClaimId(u128::from_le_bytes(drive.connection().env().random_bytes()));
    let what = ChunkRequest::Claim { claim, tag: StagingTag(tag), count };
    let bytes = list(&chunks);
    let wait = drive.connection().options().wait;
    let claimed = drive.attempts(wait, |open| {
        let (what, bytes) = (what.clone(), bytes.clone());
        let may_claim = is_behind_mark(drive, oldest);
        async move {
            match may_claim {
                true => open.client.perform(&open.handle, what, bytes).await,
                false => Err(Failure::NotStaged.into()),
            }
        }
    });
    match claimed.await? {
        ChunkReply::Done => Ok(()),
        _ => Err(drive.wrong("another reply to a claim")),
    }
}

/// Whether no sweep of this process frees a chunk: one before the mark is not in the lists of live chunks that a sweep has made.
fn is_behind_mark(drive: &RemoteDrive, oldest: ChunkId) -> bool {
    drive.connection().claimed_from().is_some_and(|mark| oldest >= mark)
}

fn list(chunks: &[ChunkRef]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(chunks.len() * ChunkRef::STORED_LEN);
    chunks.iter().for_each(|chunk| bytes.extend_from_slice(&chunk.to_bytes()));
    bytes.freeze()
}
