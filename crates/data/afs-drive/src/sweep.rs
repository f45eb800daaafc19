//! Garbage collection of segments after a crash.

use std::io;

use crate::chunk::{ChunkId, ChunkRef};
use crate::drive::{LiveChunks, SweepReport};
use crate::error::DriveError;
use crate::header::{BLOCK, footprint};
use crate::segment_drive::Inner;
use crate::segment_store::SegmentStore;

/// Goes through the segments of earlier runs: removes those without a live chunk, and punches holes between the live
/// chunks of the others.
pub(crate) fn sweep<S: SegmentStore>(
    drive: &Inner<S>,
    live: &dyn LiveChunks,
) -> Result<SweepReport, DriveError> {
    let mut report = SweepReport::default();
    for segment in drive.store.list()? {
        if drive.lock().is_old(segment) {
            let (first, last) = ids_of(segment);
            sweep_segment(drive, segment, &live.live_between(first, last)?, &mut report)?;
        }
    }
    Ok(report)
}

/// The least and the greatest id that a chunk of a segment can have.
pub(crate) fn ids_of(segment: u64) -> (ChunkId, ChunkId) {
    (ChunkId::from_parts(segment, 0), ChunkId::from_parts(segment, u64::MAX))
}

/// Frees all of a segment but these chunks, which are in order. Nothing may be written to it any more.
pub(crate) fn sweep_segment<S: SegmentStore>(
    drive: &Inner<S>,
    segment: u64,
    live: &[ChunkRef],
    report: &mut SweepReport,
) -> Result<(), DriveError> {
    report.segments += 1;
    if live.is_empty() {
        drive.store.remove(segment)?;
        drive.lock().forget(segment);
        report.removed += 1;
        return Ok(());
    }
    // The live bytes are recorded before a discard can rely on their count.
    drive.lock().learn(segment, live.iter().map(|chunk| footprint(chunk.len)).sum());
    match free_gaps(drive, segment, live, report) {
        // Its last chunk was discarded meanwhile.
        Err(DriveError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
        other => other?,
    }
    report.live += live.len() as u64;
    Ok(())
}

fn free_gaps<S: SegmentStore>(
    drive: &Inner<S>,
    segment: u64,
    chunks: &[ChunkRef],
    report: &mut SweepReport,
) -> Result<(), DriveError> {
    let len = drive.store.len(segment)?;
    let mut free_from = 0;
    for chunk in chunks {
        let (_, offset) = chunk.id.parts();
        if offset > free_from {
            drive.store.punch(segment, free_from, offset - free_from)?;
        }
        free_from = offset + footprint(chunk.len);
        // The last block of a chunk may be shorter.
        if free_from > len.next_multiple_of(BLOCK) && report.missing.len() < MISSING_MAX {
            report.missing.push(chunk.id);
        }
    }
    let end = len.next_multiple_of(BLOCK);
    if end > free_from {
        drive.store.punch(segment, free_from, end - free_from)?;
    }
    Ok(())
}

const MISSING_MAX: usize = 1000;
