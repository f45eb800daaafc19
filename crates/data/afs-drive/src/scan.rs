//! Scan: the chunks of all segments, found by their headers and read, without their references.
//!
//! What was freed is a hole and reads as zeros. Therefore bytes at the beginning of a block that are no header of a chunk there are damage,
//! and so is a chunk whose bytes are not those of its checksums. A chunk or segment of which nothing is left is known to its references
//! alone.

use std::ops::Range;

use crate::chunk::{ChunkId, ChunkRef, MAX_CHUNK_LEN};
use crate::drive::BoxFuture;
use crate::error::DriveError;
use crate::header::{self, BLOCK, footprint};
use crate::segment_drive::{Inner, SegmentDrive};
use crate::segment_store::SegmentStore;

/// What a scan found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanReport {
    /// Segments that were read.
    pub segments: u64,
    /// Chunks that are whole.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is damaged.
    pub bad: Vec<BadPart>,
    /// Damaged parts beyond [`BAD_MAX`], which are not listed.
    pub unlisted: u64,
}

/// Most damaged parts that are listed.
pub const BAD_MAX: usize = 1000;

impl ScanReport {
    fn note(&mut self, part: BadPart) {
        match self.bad.len() < BAD_MAX {
            true => self.bad.push(part),
            false => self.unlisted += 1,
        }
    }
}

/// A part of a segment that is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPart {
    /// The segment's name for an administrator.
    pub place: String,
    /// The bytes of the segment.
    pub range: Range<u64>,
    /// The damage, in words that continue the name.
    pub what: String,
}

impl<S: SegmentStore> SegmentDrive<S> {
    /// Reads everything, one chunk at a time, and writes nothing. A drive that is written to meanwhile has chunks that are not whole yet.
    ///
    /// # Errors
    /// The segments cannot be listed; what of a segment cannot be read is in the report.
    pub fn scan(&self) -> BoxFuture<Result<ScanReport, DriveError>> {
        self.blocking(|drive| {
            let mut report = ScanReport::default();
            drive.store.list()?.into_iter().for_each(|segment| scan_segment(drive, segment, &mut report));
            Ok(report)
        })
    }
}

fn scan_segment<S: SegmentStore>(drive: &Inner<S>, segment: u64, report: &mut ScanReport) {
    report.segments += 1;
    let place = drive.store.place(segment);
    let mut part = |range: Range<u64>, what: String| {
        report.note(BadPart { place: place.clone(), range, what });
    };
    let end = match drive.store.len(segment) {
        Ok(end) => end,
        Err(error) => return part(0..0, format!("cannot be read: {error}")),
    };
    let (mut at, mut lost) = (0, None);
    let (mut chunks, mut bytes) = (0, 0);
    while at < end {
        let found = find(drive, segment, at, end);
        if let (Some(from), Ok(Found::Chunk(_))) = (lost, &found) {
            part(from..at, NO_CHUNK.into());
            lost = None;
        }
        at += match found {
            Ok(Found::Chunk(chunk)) => {
                match drive.verify(chunk) {
                    Ok(()) => (chunks, bytes) = (chunks + 1, bytes + u64::from(chunk.len)),
                    Err(error) => part(at..at + footprint(chunk.len), format!("{error}")),
                }
                footprint(chunk.len)
            }
            Ok(Found::Hole) => BLOCK,
            Ok(Found::Unknown) => {
                lost = lost.or(Some(at));
                BLOCK
            }
            Err(error) => {
                part(at..end, format!("cannot be read: {error}"));
                break;
            }
        };
    }
    if let Some(from) = lost {
        part(from..end, NO_CHUNK.into());
    }
    report.chunks += chunks;
    report.bytes += bytes;
}

const NO_CHUNK: &str = "are of chunks whose headers are damaged";

/// What begins at a block.
enum Found {
    /// The header of a chunk.
    Chunk(ChunkRef),
    /// Zeros.
    Hole,
    /// Anything else.
    Unknown,
}

fn find<S: SegmentStore>(drive: &Inner<S>, segment: u64, at: u64, end: u64) -> std::io::Result<Found> {
    let mut block = vec![0; BLOCK.min(end - at) as usize];
    drive.store.read_at(segment, at, &mut block)?;
    let found = header::found(&block, ChunkId::from_parts(segment, at));
    Ok(match found.filter(|chunk| (1..=MAX_CHUNK_LEN).contains(&(chunk.len as usize))) {
        Some(chunk) => Found::Chunk(chunk),
        None if block.iter().all(|byte| *byte == 0) => Found::Hole,
        None => Found::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::Drive;
    use crate::file_segments::FileSegments;
    use crate::segment_drive::FileDrive;
    use crate::segment_drive::tests::now;
    use afs_env::Parts;
    use std::fs;
    use std::path::{Path, PathBuf};

    const LENS: [usize; 5] = [10, 5000, 200_000, 4096, 70_000];

    /// A drive with chunks of these lengths in one segment, of which the second is freed; returns the others.
    fn written(directory: &Path) -> Vec<ChunkRef> {
        let drive = FileDrive::open_directory(directory, Parts::inline()).unwrap();
        let write = |len: &usize| now(drive.write(vec![*len as u8 | 1; *len].into())).unwrap();
        let mut chunks: Vec<_> = LENS.iter().map(write).collect();
        now(drive.sync(&chunks)).unwrap();
        now(drive.discard(vec![chunks.remove(1)])).unwrap();
        chunks
    }

    fn scanned(directory: &Path) -> ScanReport {
        let segments = FileSegments::read_only(directory).unwrap();
        let drive = SegmentDrive::open(segments, Parts::inline(), 1 << 30).unwrap();
        now(drive.scan()).unwrap()
    }

    fn segment(directory: &Path) -> PathBuf {
        let mut names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        names.find(|path| path.extension().is_some_and(|end| end == "seg")).unwrap()
    }

    /// The ranges that are bad after the bytes of the segment are changed, and the chunks that are whole.
    fn after(change: impl Fn(&mut Vec<u8>, &[ChunkRef])) -> (Vec<Range<u64>>, u64) {
        let directory = tempfile::tempdir().unwrap();
        let chunks = written(directory.path());
        let path = segment(directory.path());
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes, &chunks);
        fs::write(&path, &bytes).unwrap();
        let report = scanned(directory.path());
        assert_eq!(fs::read(&path).unwrap(), bytes, "it was changed");
        assert!(report.bad.iter().all(|bad| bad.place == path.display().to_string()), "{report:?}");
        (report.bad.into_iter().map(|bad| bad.range).collect(), report.chunks)
    }

    fn range(chunk: ChunkRef) -> Range<u64> {
        let at = chunk.id.parts().1;
        at..at + footprint(chunk.len)
    }

    #[test]
    fn a_whole_drive_with_holes_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let chunks = written(directory.path());
        let report = scanned(directory.path());
        let bytes = chunks.iter().map(|chunk| u64::from(chunk.len)).sum();
        assert_eq!(report, ScanReport { segments: 1, chunks: 4, bytes, bad: Vec::new(), unlisted: 0 });
    }

    #[test]
    fn damaged_parts_beyond_the_bound_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let drive = FileDrive::open_directory(directory.path(), Parts::inline()).unwrap();
        let chunks: Vec<_> =
            (0..BAD_MAX + 7).map(|_| now(drive.write(vec![1; 10].into())).unwrap()).collect();
        now(drive.sync(&chunks)).unwrap();
        drop(drive);
        let (path, whole) = (segment(directory.path()), chunks[5]);
        let mut bytes = fs::read(&path).unwrap();
        let harmed = chunks.iter().filter(|chunk| **chunk != whole);
        harmed.for_each(|chunk| bytes[range(*chunk).start as usize + 57] ^= 1);
        fs::write(&path, &bytes).unwrap();
        let report = scanned(directory.path());
        assert_eq!((report.bad.len(), report.unlisted, report.chunks), (BAD_MAX, 6, 1));
    }

    #[test]
    fn any_damaged_byte_of_any_chunk_is_named() {
        for number in 0..LENS.len() - 1 {
            for at in [0, 5, 9, 25, 30, 33, 48, 57] {
                let (bad, whole) = after(|bytes, chunks| {
                    bytes[range(chunks[number]).start as usize + at] ^= 0x10;
                });
                assert!(whole == 3 && bad.len() == 1, "byte {at} of chunk {number}: {bad:?}, {whole} whole");
            }
        }
    }

    #[test]
    fn a_segment_that_is_cut_names_what_is_behind_the_cut() {
        let (bad, whole) = after(|bytes, chunks| bytes.truncate(range(chunks[3]).start as usize + 6000));
        assert!(whole == 3 && bad.len() == 1, "{bad:?}");
        let (bad, whole) = after(|bytes, chunks| bytes.truncate(range(chunks[3]).start as usize + 20));
        assert!(whole == 3 && bad.len() == 1, "{bad:?}");
    }

    #[test]
    fn chunks_behind_a_lost_header_are_found_and_lost_ones_in_a_row_are_one_part() {
        let (bad, whole) = after(|bytes, chunks| {
            let (first, second) = (range(chunks[1]), range(chunks[2]));
            bytes[first.start as usize..second.end as usize - 1000].fill(0xa5);
            assert_eq!(first.end, second.start);
        });
        assert_eq!((bad.len(), whole), (1, 2), "{bad:?}");
    }
}
