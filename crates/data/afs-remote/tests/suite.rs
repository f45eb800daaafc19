//! The same tests for every kind of drive: in memory, in files, on another host, in a bucket.

#![allow(clippy::unwrap_used)]

use crate::kit;

use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use afs_bucket::{BucketDrive, Config, MemoryBucket, OwnerId};
use afs_drive::{ChunkRef, Drive, DriveError, FileDrive, MAX_CHUNK_LEN, MemorySegments, SegmentDrive};
use afs_env::Parts;
use bytes::Bytes;
use kit::{Kit, Live, data};

type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A kind of drive.
trait Kind {
    /// The drive, as after a start of its user.
    fn open(&mut self) -> Arc<dyn Drive>;

    /// Runs work to its end.
    fn run<T: Send + 'static>(&self, work: Work<'static, T>) -> T;
}

struct Memory(MemorySegments);
struct Files(tempfile::TempDir);
struct Remote(Kit);
struct InBucket(MemoryBucket);

fn now<T>(work: Work<'_, T>) -> T {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("work done at once leaves nothing pending"),
    }
}

impl Kind for Memory {
    fn open(&mut self) -> Arc<dyn Drive> {
        Arc::new(SegmentDrive::open(self.0.clone(), Parts::inline(), 1 << 20).unwrap())
    }

    fn run<T: Send + 'static>(&self, work: Work<'static, T>) -> T {
        now(work)
    }
}

impl Kind for Files {
    fn open(&mut self) -> Arc<dyn Drive> {
        Arc::new(FileDrive::open_directory(self.0.path().join("drive"), Parts::inline()).unwrap())
    }

    fn run<T: Send + 'static>(&self, work: Work<'static, T>) -> T {
        now(work)
    }
}

impl Kind for Remote {
    fn open(&mut self) -> Arc<dyn Drive> {
        Arc::new(self.0.remote())
    }

    fn run<T: Send + 'static>(&self, work: Work<'static, T>) -> T {
        self.0.run(work)
    }
}

impl Kind for InBucket {
    fn open(&mut self) -> Arc<dyn Drive> {
        let (bucket, config) =
            (Arc::new(self.0.clone()), Config { pack_bytes: 1 << 20, ..Config::default() });
        let drive = BucketDrive::create(bucket, OwnerId([1; 16]), Parts::inline(), config);
        Arc::new(now(Box::pin(drive)).unwrap())
    }

    fn run<T: Send + 'static>(&self, work: Work<'static, T>) -> T {
        now(work)
    }
}

fn whole(chunk: ChunkRef) -> Range<u32> {
    0..chunk.len
}

const LENGTHS: [usize; 9] = [1, 15, 4096, 65_536, 65_537, 3 * 65_536 + 77, 600_000, 600_000, MAX_CHUNK_LEN];

fn write(kind: &impl Kind, drive: &Arc<dyn Drive>, bytes: Bytes) -> Result<ChunkRef, DriveError> {
    let drive = drive.clone();
    kind.run(Box::pin(async move { drive.write(bytes).await }))
}

fn read(
    kind: &impl Kind,
    drive: &Arc<dyn Drive>,
    chunk: ChunkRef,
    range: Range<u32>,
) -> Result<Bytes, DriveError> {
    let drive = drive.clone();
    kind.run(Box::pin(async move { drive.read(chunk, range).await }))
}

fn suite(mut kind: impl Kind) {
    let drive = kind.open();
    let chunks: Vec<_> =
        LENGTHS.iter().zip(0..).map(|(len, n)| write(&kind, &drive, data(n, *len)).unwrap()).collect();
    assert!(chunks.is_sorted(), "chunks are ordered by birth");
    sync(&kind, &drive, &chunks).unwrap();
    sync(&kind, &drive, &[]).unwrap();
    reads_give_what_was_written(&kind, &drive, &chunks);
    wrong_lengths_are_refused(&kind, &drive, &chunks);
    discarded_chunks_are_gone(&kind, &drive, &chunks);
    drop(drive);
    let drive = kind.open();
    a_sweep_frees_what_is_not_live(&kind, &drive, &chunks);
}

fn sync(kind: &impl Kind, drive: &Arc<dyn Drive>, chunks: &[ChunkRef]) -> Result<(), DriveError> {
    let (drive, chunks) = (drive.clone(), chunks.to_vec());
    kind.run(Box::pin(async move { drive.sync(&chunks).await }))
}

fn reads_give_what_was_written(kind: &impl Kind, drive: &Arc<dyn Drive>, chunks: &[ChunkRef]) {
    for (chunk, seed) in chunks.iter().zip(0..) {
        let expected = data(seed, chunk.len as usize);
        assert_eq!(chunk.crc, crc32c::crc32c(&expected));
        for range in [whole(*chunk), 0..0, 0..1, chunk.len / 3..chunk.len / 2, chunk.len - 1..chunk.len] {
            let part = expected.slice(range.start as usize..range.end as usize);
            assert_eq!(read(kind, drive, *chunk, range).unwrap(), part);
        }
    }
}

fn wrong_lengths_are_refused(kind: &impl Kind, drive: &Arc<dyn Drive>, chunks: &[ChunkRef]) {
    assert!(matches!(write(kind, drive, Bytes::new()), Err(DriveError::Length { len: 0 })));
    let too_long = write(kind, drive, data(0, MAX_CHUNK_LEN + 1));
    assert!(matches!(too_long, Err(DriveError::Length { .. })));
    assert!(matches!(read(kind, drive, chunks[0], 0..2), Err(DriveError::Length { .. })));
    let other_sum = ChunkRef { crc: chunks[3].crc ^ 1, ..chunks[3] };
    assert!(matches!(read(kind, drive, other_sum, 0..1), Err(DriveError::Damaged { .. })));
}

fn discarded_chunks_are_gone(kind: &impl Kind, drive: &Arc<dyn Drive>, chunks: &[ChunkRef]) {
    for _ in 0..2 {
        let (drive, chunk) = (drive.clone(), chunks[2]);
        kind.run(Box::pin(async move { drive.discard(vec![chunk]).await })).unwrap();
    }
    let gone = read(kind, drive, chunks[2], 0..1);
    assert!(matches!(gone, Err(DriveError::Damaged { chunk }) if chunk == chunks[2].id));
    assert_eq!(read(kind, drive, chunks[3], 0..1).unwrap(), data(3, 1));
}

fn a_sweep_frees_what_is_not_live(kind: &impl Kind, drive: &Arc<dyn Drive>, chunks: &[ChunkRef]) {
    let newer = write(kind, drive, data(9, 10)).unwrap();
    assert!(newer > *chunks.last().unwrap());
    let live = vec![chunks[0], chunks[5], chunks[6]];
    let (own, kept) = (drive.clone(), live.clone());
    let report = kind.run(Box::pin(async move { own.sweep(Arc::new(Live(kept))).await })).unwrap();
    assert_eq!((report.live, report.missing.len()), (3, 0));
    for chunk in &live {
        assert!(read(kind, drive, *chunk, whole(*chunk)).is_ok());
    }
    assert!(read(kind, drive, chunks[7], 0..1).is_err());
    assert_eq!(read(kind, drive, newer, 0..10).unwrap(), data(9, 10));
}

#[test]
fn memory() {
    suite(Memory(MemorySegments::new(64 << 20)));
}

#[test]
fn files() {
    suite(Files(tempfile::tempdir().unwrap()));
}

#[test]
fn bucket() {
    suite(InBucket(MemoryBucket::default()));
}

#[test]
fn another_host() {
    for seed in 0..3 {
        suite(Remote(Kit::with_drive(seed)));
    }
}
