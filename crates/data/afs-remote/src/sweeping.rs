//! Sweep of a remote drive: the store tells range by range what it refers to, the drive frees the rest.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::frame::{ChunkReply, ChunkRequest, LIVE_MAX, RANGE_LEN};
use afs_drive::{BoxFuture, ChunkId, ChunkRef, DriveError, LiveChunks, SweepReport};
use afs_env::EnvExt;
use bytes::{Bytes, BytesMut};

use crate::drive::RemoteDrive;
use crate::reading::gather;

/// Bytes of the list of ranges that the drive may send before more are wanted.
const CREDIT: u32 = 256 << 10;
/// How long a range is waited for, at a drive that can be reached.
const WAIT: Duration = Duration::from_secs(300);
/// As many ids of missing chunks as a local sweep reports.
const MISSING_MAX: usize = 1000;

/// Frees what is not live of the chunks that were there before this file server wrote its first one.
pub(crate) async fn sweep(drive: &RemoteDrive, live: Arc<dyn LiveChunks>) -> Result<SweepReport, DriveError> {
    let ranges = ranges(drive, None).await?;
    sweep_all(drive, ranges, live).await
}

/// Frees what operations of this file server have left that were not answered: of the chunks between the end of the last sweep and a
/// mark that the drive tells now, those that are not live when what was under way at the mark is settled.
pub(crate) async fn sweep_left(
    drive: &RemoteDrive,
    live: Arc<dyn LiveChunks>,
    settled: BoxFuture<Result<(), DriveError>>,
) -> Result<SweepReport, DriveError> {
    if !drive.connection().take_unclear() {
        return Ok(SweepReport::default());
    }
    let swept = free_left(drive, live, settled).await;
    swept.inspect_err(|_| drive.connection().note_unclear())
}

async fn free_left(
    drive: &RemoteDrive,
    live: Arc<dyn LiveChunks>,
    settled: BoxFuture<Result<(), DriveError>>,
) -> Result<SweepReport, DriveError> {
    let connection = drive.connection();
    let wait = connection.options().wait;
    let mark = match drive.perform(connection.begin_request(), Bytes::new(), wait).await? {
        ChunkReply::Begun { mark, .. } => mark,
        _ => return Err(drive.wrong("another reply to the beginning of a sweep")),
    };
    // What is claimed or written from now on is behind the mark.
    let from = connection.begin_sweep(mark);
    settled.await?;
    let mut ranges = ranges(drive, Some(mark)).await?;
    ranges.retain(|(first, _)| *first >= from);
    let report = sweep_all(drive, ranges, live).await?;
    connection.end_sweep(mark);
    Ok(report)
}

async fn sweep_all(
    drive: &RemoteDrive,
    ranges: Vec<(ChunkId, ChunkId)>,
    live: Arc<dyn LiveChunks>,
) -> Result<SweepReport, DriveError> {
    let mut report = SweepReport::default();
    for (first, last) in ranges {
        let (env, live) = (drive.connection().env(), live.clone());
        let chunks = env.run_blocking(move || live.live_between(first, last)).await;
        let chunks = chunks.unwrap_or(Err(DriveError::Closed))?;
        sweep_range(drive, (first, last), &chunks, &mut report).await?;
    }
    Ok(report)
}

/// The ranges of the chunks before a mark; of those before the first one without.
async fn ranges(drive: &RemoteDrive, mark: Option<ChunkId>) -> Result<Vec<(ChunkId, ChunkId)>, DriveError> {
    let wait = drive.connection().options().wait;
    let bytes = drive.attempts(wait, |open| {
        // The connection exists, so the first mark is known.
        let before = mark.or(drive.connection().mark()).unwrap_or(ChunkId::MIN);
        let what = ChunkRequest::Ranges { before, credit: CREDIT };
        async move { gather(open.client.fetch(&open.handle, what).await?).await }
    });
    let bytes = bytes.await?;
    let (ranges, rest) = bytes.as_chunks::<RANGE_LEN>();
    let ranges: Vec<_> = ranges.iter().map(range).collect();
    let in_order = ranges.iter().all(|(first, last)| first <= last)
        && ranges.windows(2).all(|pair| pair[0].1 < pair[1].0);
    // One that has more would have all chunks of the store gathered at once.
    let of_segments = ranges.iter().all(|(first, last)| first.parts().0 == last.parts().0);
    match in_order && of_segments && rest.is_empty() {
        true => Ok(ranges),
        false => Err(drive.wrong("a list of ranges that is none of segments in order")),
    }
}

fn range(bytes: &[u8; RANGE_LEN]) -> (ChunkId, ChunkId) {
    let (mut first, mut last) = ([0; 16], [0; 16]);
    first.copy_from_slice(&bytes[..16]);
    last.copy_from_slice(&bytes[16..]);
    (ChunkId::from_bytes(first), ChunkId::from_bytes(last))
}

async fn sweep_range(
    drive: &RemoteDrive,
    (first, last): (ChunkId, ChunkId),
    live: &[ChunkRef],
    report: &mut SweepReport,
) -> Result<(), DriveError> {
    let count = u32::try_from(live.len()).ok().filter(|count| *count <= LIVE_MAX);
    let count = count.ok_or_else(|| drive.wrong("a range with more chunks than it can have"))?;
    let mut bytes = BytesMut::with_capacity(live.len() * ChunkRef::STORED_LEN);
    live.iter().for_each(|chunk| bytes.extend_from_slice(&chunk.to_bytes()));
    let what = ChunkRequest::Sweep { first, last, live: count };
    match drive.perform(what, bytes.freeze(), WAIT).await? {
        ChunkReply::Swept { removed, missing, one_missing } => {
            report.segments += 1;
            report.removed += u64::from(removed);
            report.live += live.len() as u64;
            if missing > 0 && report.missing.len() < MISSING_MAX {
                report.missing.push(one_missing);
            }
            Ok(())
        }
        _ => Err(drive.wrong("another reply to a sweep")),
    }
}
