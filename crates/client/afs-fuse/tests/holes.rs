//! Tests of files with holes under a real kernel, with passthrough (as root mounts) and without (as a user mounts).
//!
//! They need root and `/dev/fuse`; without these they say so and pass, but fail if `CI=true`.
#![allow(clippy::unwrap_used)] // A cell that cannot be made is a failed test.

#[allow(dead_code)] // Each test uses a part of it.
use crate::kit;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use kit::{Machine, MountedCell, can_mount};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;

const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;
/// Offsets of the bytes written into a file of [`TIB`].
const PLACES: [u64; 3] = [0, 1 << 39, TIB - 1];
/// Most bytes that these take: a page for each, and what a file system may add.
const LITTLE: u64 = 3 * (64 << 10);

/// Two machines, with passthrough and without.
fn on_both_kinds(work: impl Fn(&Machine, &Machine)) {
    if !can_mount() {
        return;
    }
    for passthrough in [true, false] {
        let cell = MountedCell::new();
        let (writer, reader) = (cell.machine("writer", passthrough), cell.machine("reader", passthrough));
        work(&writer, &reader);
    }
}

fn open(path: &Path) -> File {
    File::options().create(true).truncate(false).read(true).write(true).open(path).unwrap()
}

fn bytes_at(path: &Path, place: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let n = File::open(path).unwrap().read_at(&mut bytes, place).unwrap();
    bytes.truncate(n);
    bytes
}

/// Waits for an effect that comes some time after a file is closed.
fn until(is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(100);
    while !is_so() {
        assert!(Instant::now() < end, "it does not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn data_ranges(file: &File) -> Vec<std::ops::Range<u64>> {
    let (mut ranges, mut at) = (Vec::new(), 0);
    loop {
        match seek(file, SeekFrom::Data(at)) {
            Ok(start) => {
                at = seek(file, SeekFrom::Hole(start)).unwrap();
                ranges.push(start..at);
            }
            Err(error) => {
                assert_eq!(error, Errno::NXIO);
                return ranges;
            }
        }
    }
}

#[test]
fn a_file_of_a_tebibyte_with_three_bytes_is_as_quick_as_a_small_one() {
    on_both_kinds(|writer, reader| {
        let (ours, theirs) = (writer.mount.join("sparse"), reader.mount.join("sparse"));
        let before = writer.venus.counters().bytes_stored;
        let file = open(&ours);
        PLACES.iter().for_each(|place| file.write_all_at(b"x", *place).unwrap());
        let ranges = data_ranges(&file);
        assert_eq!(ranges.len(), 3, "{ranges:?}");
        assert!(PLACES.iter().zip(&ranges).all(|(place, range)| range.contains(place)), "{ranges:?}");
        assert_eq!(seek(&file, SeekFrom::Hole(TIB)), Err(Errno::NXIO));
        assert_eq!(seek(&file, SeekFrom::Hole(TIB - 1)), Ok(TIB));
        file.sync_all().unwrap();
        drop(file);
        let stored = writer.venus.counters().bytes_stored - before;
        assert!(stored <= 2 * LITTLE, "{stored} bytes");
        let seen = fs::metadata(&ours).unwrap();
        assert!(seen.len() == TIB && seen.blocks() > 0 && seen.blocks() * 512 <= LITTLE, "{}", seen.blocks());
        assert_eq!(fs::metadata(&theirs).unwrap().blocks(), TIB / 512, "nobody tells of holes");
        for place in PLACES {
            assert_eq!(bytes_at(&theirs, place, 1), b"x");
        }
        // A copy has the same holes; no more is read and stored for it.
        let copy = writer.mount.join("copy");
        let cp = Command::new("timeout").args(["100", "cp", "--sparse=auto"]).args([&ours, &copy]).status();
        assert!(cp.unwrap().success());
        let stored = writer.venus.counters().bytes_stored - before;
        assert!(stored <= 3 * LITTLE, "{stored} bytes");
        assert_eq!((bytes_at(&copy, 1 << 39, 2), fs::metadata(&copy).unwrap().len()), (vec![b'x', 0], TIB));
    });
}

#[test]
fn fallocate_does_what_it_says_or_says_that_it_does_not() {
    on_both_kinds(|writer, reader| {
        let (ours, theirs) = (writer.mount.join("file"), reader.mount.join("file"));
        let mut want = vec![7; 3 << 20];
        fs::write(&ours, &want).unwrap();
        let file = open(&ours);
        let allocate = |flags, pos, len| fallocate(&file, flags, pos, len);
        let length = || file.metadata().unwrap().len();
        assert_eq!(allocate(FallocateFlags::KEEP_SIZE, 0, 4 * MIB), Err(Errno::OPNOTSUPP));
        assert_eq!(allocate(FallocateFlags::COLLAPSE_RANGE, 0, MIB), Err(Errno::OPNOTSUPP));
        assert_eq!(allocate(FallocateFlags::INSERT_RANGE, 0, MIB), Err(Errno::OPNOTSUPP));
        allocate(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, MIB, MIB).unwrap();
        want[1 << 20..2 << 20].fill(0);
        assert_eq!((length(), data_ranges(&file)), (3 * MIB, vec![0..MIB, 2 * MIB..3 * MIB]));
        allocate(FallocateFlags::empty(), 3 * MIB, MIB).unwrap();
        assert_eq!(length(), 4 * MIB);
        allocate(FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE, 4 * MIB - 9, MIB).unwrap();
        assert_eq!(length(), 4 * MIB);
        allocate(FallocateFlags::ZERO_RANGE, 2 * MIB + 5, 8 * MIB).unwrap();
        assert_eq!(length(), 10 * MIB + 5);
        want.resize((10 << 20) + 5, 0);
        want[(2 << 20) + 5..].fill(0);
        assert!(fs::read(&ours).unwrap() == want);
        file.write_all_at(b"into the hole", 3 << 19).unwrap();
        want[3 << 19..][..13].copy_from_slice(b"into the hole");
        drop(file);
        assert!(fs::read(&theirs).unwrap() == want);
        assert!(fs::read(&ours).unwrap() == want);
        assert_eq!(allocate_of_reader(&ours), Err(Errno::BADF));
    });
}

fn allocate_of_reader(path: &Path) -> rustix::io::Result<()> {
    fallocate(File::open(path).unwrap(), FallocateFlags::empty(), 0, 1 << 40)
}

/// The partition has a gibibyte. What does not fit is refused, and neither length nor bytes change.
#[test]
fn fallocate_of_more_than_the_partition_has_is_refused() {
    on_both_kinds(|writer, reader| {
        let (ours, theirs) = (writer.mount.join("full"), reader.mount.join("full"));
        fs::write(&ours, "text").unwrap();
        let file = open(&ours);
        let allocate = |pos, len| fallocate(&file, FallocateFlags::empty(), pos, len);
        assert_eq!(allocate(0, 2 << 30), Err(Errno::NOSPC));
        assert_eq!(allocate(1 << 40, 2 << 30), Err(Errno::NOSPC));
        assert_eq!(file.metadata().unwrap().len(), 4);
        allocate(0, 512 << 20).unwrap();
        drop(file);
        assert_eq!(fs::metadata(&theirs).unwrap().len(), 512 << 20);
        assert_eq!(bytes_at(&theirs, 0, 6), b"text\0\0");
    });
}

/// The kernel knows of the data and has not sent it yet: a copy made by the result of lseek must contain it all the
/// same.
#[test]
fn data_written_into_a_hole_by_a_mapping_is_found_by_lseek() {
    const MAP: &str = "import mmap, os, sys\n\
        f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n\
        os.ftruncate(f, 64 << 20)\n\
        m = mmap.mmap(f, 0)\n\
        for place in (9 << 20, 40 << 20):\n\
        \x20   m[place:place + 4] = b'MAP '\n\
        \x20   g = os.open(sys.argv[1], os.O_RDONLY)\n\
        \x20   assert os.lseek(g, place & ~0xfffff, os.SEEK_DATA) >> 20 == place >> 20\n\
        assert os.lseek(g, 0, os.SEEK_DATA) >> 20 == 9\n\
        m[9 << 20:(9 << 20) + 4] = b'LATE'\n\
        os.close(f)\n\
        m.close()";
    on_both_kinds(|writer, reader| {
        let (ours, theirs) = (writer.mount.join("map"), reader.mount.join("map"));
        let before = writer.venus.counters().bytes_stored;
        let output = Command::new("python3").args(["-c", MAP]).arg(&ours).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        until(|| bytes_at(&theirs, 9 << 20, 4) == b"LATE");
        assert_eq!(bytes_at(&theirs, 40 << 20, 5), b"MAP \0");
        let stored = writer.venus.counters().bytes_stored - before;
        assert!(stored <= MIB, "{stored} bytes");
    });
}
