//! Tests of the drive, the same over each kind of segment store.

use afs_env::Parts;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use super::*;
use crate::chunk::ChunkId;
use crate::header::PIECE;

pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("work done at once leaves nothing pending"),
    }
}

fn data(seed: u8, len: usize) -> Bytes {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect::<Vec<_>>().into()
}

fn whole(chunk: ChunkRef) -> Range<u32> {
    0..chunk.len
}

struct Live(Vec<ChunkRef>);

impl LiveChunks for Live {
    fn live_between(&self, first: ChunkId, last: ChunkId) -> Result<Vec<ChunkRef>, DriveError> {
        Ok(self.0.iter().copied().filter(|chunk| (first..=last).contains(&chunk.id)).collect())
    }
}

/// The same tests on every kind of segment store.
fn suite<S: SegmentStore>(open: impl Fn() -> S) {
    let drive = SegmentDrive::open(open(), Parts::inline(), 1 << 20).unwrap();
    let lengths = [1, 15, 4096, PIECE, PIECE + 1, 3 * PIECE + 77, 600_000, 600_000, MAX_CHUNK_LEN];
    let chunks: Vec<_> =
        lengths.iter().enumerate().map(|(n, len)| now(drive.write(data(n as u8, *len))).unwrap()).collect();
    assert!(chunks.is_sorted(), "chunks are ordered by birth");
    now(drive.sync(&chunks)).unwrap();
    for (n, chunk) in chunks.iter().enumerate() {
        let expected = data(n as u8, lengths[n]);
        assert_eq!(chunk.crc, crc32c::crc32c(&expected));
        assert_eq!(now(drive.read(*chunk, whole(*chunk))).unwrap(), expected);
        for range in [0..0, 0..1, chunk.len / 3..chunk.len / 2, chunk.len - 1..chunk.len] {
            let part = expected.slice(range.start as usize..range.end as usize);
            assert_eq!(now(drive.read(*chunk, range)).unwrap(), part);
        }
    }
    assert!(matches!(now(drive.write(Bytes::new())), Err(DriveError::Length { len: 0 })));
    assert!(matches!(now(drive.write(data(0, MAX_CHUNK_LEN + 1))), Err(DriveError::Length { .. })));
    assert!(matches!(now(drive.read(chunks[0], 0..2)), Err(DriveError::Length { .. })));

    // A discarded chunk cannot be read, and can be discarded again.
    for _ in 0..2 {
        now(drive.discard(vec![chunks[2]])).unwrap();
    }
    assert!(
        matches!(now(drive.read(chunks[2], 0..1)), Err(DriveError::Damaged { chunk }) if chunk == chunks[2].id)
    );
    assert_eq!(now(drive.read(chunks[3], 0..1)).unwrap(), data(3, 1));
    drop(drive);

    // The next run never writes where the last one did, and a sweep frees all chunks that are not live.
    let drive = SegmentDrive::open(open(), Parts::inline(), 1 << 20).unwrap();
    let newer = now(drive.write(data(9, 10))).unwrap();
    assert!(newer > *chunks.last().unwrap());
    let live = vec![chunks[0], chunks[5], chunks[6]];
    let report = now(drive.sweep(Arc::new(Live(live.clone())))).unwrap();
    assert_eq!((report.live, report.missing.len()), (3, 0));
    assert!(report.removed >= 1 && report.segments > report.removed);
    for chunk in &live {
        assert!(now(drive.read(*chunk, whole(*chunk))).is_ok());
    }
    assert!(now(drive.read(chunks[7], 0..1)).is_err());
    assert_eq!(now(drive.read(newer, 0..10)).unwrap(), data(9, 10));

    // With its last live chunk a segment is removed.
    let before = drive.store().list().unwrap().len();
    now(drive.discard(live)).unwrap();
    assert_eq!(drive.store().list().unwrap().len(), 1, "of {before}");
}

#[test]
fn memory_drive() {
    let store = MemorySegments::new(64 << 20);
    suite(|| store.clone());
}

#[test]
fn file_drive() {
    let directory = tempfile::tempdir().unwrap();
    suite(|| FileSegments::open(directory.path().join("drive")).unwrap());
}

#[test]
fn a_directory_belongs_to_one_drive() {
    let directory = tempfile::tempdir().unwrap();
    let first = FileDrive::open_directory(directory.path(), Parts::inline()).unwrap();
    let second = FileDrive::open_directory(directory.path(), Parts::inline());
    assert_eq!(second.err().map(|error| error.kind()), Some(io::ErrorKind::ResourceBusy));
    drop(first);
    assert!(FileDrive::open_directory(directory.path(), Parts::inline()).is_ok());
}

#[test]
fn holes_give_the_room_back() {
    let drive = MemoryDrive::in_memory(1 << 20);
    let chunks: Vec<_> = (0..15).map(|n| now(drive.write(data(n, 60_000))).unwrap()).collect();
    assert!(matches!(now(drive.write(data(0, 300_000))), Err(DriveError::NoSpace)));
    assert_eq!(now(drive.read(chunks[14], 0..60_000)).unwrap(), data(14, 60_000));
    let free = drive.usage().unwrap().free;
    now(drive.discard(chunks)).unwrap();
    assert!(drive.usage().unwrap().free > free);
    let chunk = now(drive.write(data(0, 300_000))).unwrap();
    assert_eq!(now(drive.read(chunk, whole(chunk))).unwrap(), data(0, 300_000));
}

#[test]
fn damage_is_noticed_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let drive = FileDrive::open_directory(directory.path(), Parts::inline()).unwrap();
    let chunk = now(drive.write(data(1, 200_000))).unwrap();
    let (segment, offset) = chunk.id.parts();
    drive.store().write_at(segment, offset + data_start(chunk.len) + 150_000, b"x").unwrap();
    assert_eq!(now(drive.read(chunk, 0..100_000)).unwrap(), data(1, 200_000).slice(..100_000));
    let error = now(drive.read(chunk, whole(chunk))).unwrap_err();
    assert_eq!(error.to_string(), format!("chunk {} is damaged", chunk.id));
    // A truncated segment.
    let path = directory.path().join(format!("{segment:016x}.seg"));
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(1000).unwrap();
    assert!(matches!(now(drive.read(chunk, whole(chunk))), Err(DriveError::Unreadable { .. })));
}

#[test]
fn a_chunk_whose_name_nobody_takes_is_discarded() {
    let drive = MemoryDrive::in_memory(1 << 20);
    let before = drive.usage().unwrap().free;
    drop(drive.write(data(1, 100_000)));
    assert_eq!(drive.usage().unwrap().free, before);
}

#[test]
fn names_go_on_behind_the_last_that_is_known() {
    let segments = MemorySegments::new(1 << 30);
    let open = || SegmentDrive::open(segments.clone(), Parts::inline(), 1 << 20).unwrap();
    let drive = open();
    drive.continue_after(ChunkId::from_parts(7, 4096));
    let first = now(drive.write(data(1, 100))).unwrap();
    assert_eq!(first.id, ChunkId::from_parts(8, 0));
    // A smaller id, or one of this run, changes nothing or continues after it.
    drive.continue_after(ChunkId::from_parts(3, 0));
    assert_eq!(now(drive.write(data(1, 100))).unwrap().id.parts().0, 8);
    let report = now(drive.sweep(Arc::new(Live(Vec::new())))).unwrap();
    assert_eq!(report.removed, 0, "chunks of this run are not swept");
}

/// Memory that does something else before the next write or hole, and may fail.
#[derive(Clone)]
struct Interrupted {
    memory: MemorySegments,
    before: Arc<Mutex<Option<Interruption>>>,
    fails: Arc<AtomicBool>,
}

type Interruption = Box<dyn FnOnce() + Send>;

impl Interrupted {
    fn new() -> Self {
        let (before, fails) = Default::default();
        Self { memory: MemorySegments::new(64 << 20), before, fails }
    }

    fn set_fails(&self, fails: bool) {
        self.fails.store(fails, Ordering::Relaxed);
    }

    fn used(&self) -> u64 {
        let usage = self.memory.usage().unwrap();
        usage.total - usage.free
    }

    fn interrupt(&self) -> io::Result<()> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(io::Error::other("the medium fails"));
        }
        let before = self.before.lock().take();
        before.into_iter().for_each(|before| before());
        Ok(())
    }
}

impl SegmentStore for Interrupted {
    fn list(&self) -> io::Result<Vec<u64>> {
        self.memory.list()
    }

    fn len(&self, segment: u64) -> io::Result<u64> {
        self.memory.len(segment)
    }

    fn read_at(&self, segment: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.memory.read_at(segment, offset, out)
    }

    fn write_at(&self, segment: u64, offset: u64, data: &[u8]) -> io::Result<()> {
        self.interrupt()?;
        self.memory.write_at(segment, offset, data)
    }

    fn sync(&self, segment: u64) -> io::Result<()> {
        self.memory.sync(segment)
    }

    fn punch(&self, segment: u64, offset: u64, len: u64) -> io::Result<()> {
        self.interrupt()?;
        self.memory.punch(segment, offset, len)
    }

    fn remove(&self, segment: u64) -> io::Result<()> {
        self.memory.remove(segment)
    }

    fn usage(&self) -> io::Result<Usage> {
        self.memory.usage()
    }
}

/// A sweep of a segment counts its live bytes. A chunk that is discarded or written meanwhile would be counted as live or not, and
/// the segment be removed with chunks in it.
#[test]
fn no_chunk_of_a_segment_is_written_or_discarded_while_it_is_swept() {
    let store = Interrupted::new();
    let drive = SegmentDrive::open(store.clone(), Parts::inline(), 1 << 20).unwrap();
    let interrupt = |then: Interruption| *store.before.lock() = Some(then);
    let busy =
        |outcome: Result<(), DriveError>| assert!(matches!(outcome, Err(DriveError::Busy)), "{outcome:?}");
    let [kept, left] = [1, 2].map(|seed| now(drive.write(data(seed, 100_000))).unwrap());
    let range = sweep::ids_of(kept.id.parts().0);
    // It is swept while another chunk of it is being written, and while that one is discarded.
    let own = drive.clone();
    interrupt(Box::new(move || {
        own.mark();
        busy(now(own.sweep_range(range, vec![kept, left])).map(drop));
    }));
    let third = now(drive.write(data(3, 100_000))).unwrap();
    let fourth = now(drive.write(data(4, 10))).unwrap();
    assert!(third.id.parts().0 == kept.id.parts().0 && fourth.id.parts().0 > kept.id.parts().0);
    let own = drive.clone();
    interrupt(Box::new(move || busy(now(own.sweep_range(range, vec![kept, left])).map(drop))));
    now(drive.discard(vec![third])).unwrap();
    assert!(store.before.lock().is_none());
    // Chunks of it are to be discarded while it is swept: what is live, and what is not.
    let own = drive.clone();
    interrupt(Box::new(move || {
        busy(now(own.discard(vec![left])));
        busy(now(own.discard(vec![kept])));
        busy(now(own.sweep_range(range, vec![kept])).map(drop));
    }));
    assert_eq!(now(drive.sweep_range(range, vec![kept])).unwrap().live, 1);
    assert!(store.before.lock().is_none());
    now(drive.discard(vec![left])).unwrap();
    assert_eq!(now(drive.read(kept, whole(kept))).unwrap(), data(1, 100_000));
    now(drive.discard(vec![kept])).unwrap();
    assert_eq!(drive.store().list().unwrap(), [fourth.id.parts().0], "with its last chunk the segment goes");
}

/// The reply to a discard may be lost while it is under way, and the next attempt come. Subtracted twice from the live bytes, the chunk
/// would take its segment with it, and the others in it.
#[test]
fn a_chunk_that_is_discarded_by_two_calls_at_a_time_is_counted_once() {
    let store = Interrupted::new();
    let drive = SegmentDrive::open(store.clone(), Parts::inline(), 1 << 20).unwrap();
    let [kept, gone] = [1, 2].map(|seed| now(drive.write(data(seed, 100_000))).unwrap());
    drive.mark();
    now(drive.write(data(3, 10))).unwrap();
    let own = drive.clone();
    *store.before.lock() = Some(Box::new(move || {
        let second = now(own.discard(vec![gone]));
        assert!(matches!(second, Err(DriveError::Busy)), "{second:?}");
    }));
    now(drive.discard(vec![gone])).unwrap();
    now(drive.discard(vec![gone])).unwrap();
    assert_eq!(now(drive.read(kept, whole(kept))).unwrap(), data(1, 100_000));
    now(drive.discard(vec![kept])).unwrap();
    assert_eq!(drive.store().list().unwrap().len(), 1, "the segment went with its last chunk");
}

#[test]
fn what_cannot_be_freed_while_the_medium_fails_is_freed_later() {
    let store = Interrupted::new();
    let drive = SegmentDrive::open(store.clone(), Parts::inline(), 1 << 20).unwrap();
    let [kept, gone] = [1, 2].map(|seed| now(drive.write(data(seed, 100_000))).unwrap());
    let used = store.used();
    // It fails behind the header of a chunk, whose writer learns no id.
    let failing = store.clone();
    *store.before.lock() = Some(Box::new(move || failing.set_fails(true)));
    assert!(matches!(now(drive.write(data(3, 300_000))), Err(DriveError::Io(_))));
    assert!(matches!(now(drive.discard(vec![gone])), Err(DriveError::Io(_))));
    assert!(drive.0.free_again(), "it fails still");
    store.set_fails(false);
    assert!(!drive.0.free_again());
    assert!(store.used() + 100_000 <= used, "{} of {used}", store.used());
    // Who discarded it tries again, too. Each was subtracted once.
    now(drive.discard(vec![gone])).unwrap();
    drive.mark();
    now(drive.write(data(4, 10))).unwrap();
    assert_eq!(now(drive.read(kept, whole(kept))).unwrap(), data(1, 100_000));
    now(drive.discard(vec![kept])).unwrap();
    assert_eq!(drive.store().list().unwrap().len(), 1, "the segment went with its last chunk");
}

#[test]
fn what_a_sweep_has_freed_is_not_freed_once_more() {
    let store = Interrupted::new();
    let drive = SegmentDrive::open(store.clone(), Parts::inline(), 1 << 20).unwrap();
    let kept = now(drive.write(data(1, 100_000))).unwrap();
    let failing = store.clone();
    *store.before.lock() = Some(Box::new(move || failing.set_fails(true)));
    assert!(now(drive.write(data(3, 100_000))).is_err());
    store.set_fails(false);
    drive.mark();
    now(drive.write(data(4, 10))).unwrap();
    now(drive.sweep_range(sweep::ids_of(kept.id.parts().0), vec![kept])).unwrap();
    assert!(!drive.0.free_again());
    assert_eq!(now(drive.read(kept, whole(kept))).unwrap(), data(1, 100_000));
}
