//! A directory of the largest size, and files larger than the cache.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use andrew_tests::hostile::counters::calls;
use andrew_tests::hostile::process::resident_kib;
use andrew_tests::hostile::small_disk::SmallDisk;
use andrew_tests::live::files::{Pattern, names};
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::seconds;
use andrew_tests::live::setup::Setup;

use crate::hostile::assert_calm;

/// An AFS directory can hold about 64,400 short names: docs/protocol/directory.md.
const ENTRIES: u64 = 64_000;

#[test]
fn a_directory_of_64000_entries() {
    if !all_there(&[Need::Fuse, Need::Root]) {
        return;
    }
    let setup = Setup::new("large_directory", 5, seconds(2400));
    // 128,000 changes in succession, each on disk before the next: on a disk in memory.
    let disk = SmallDisk::new(setup.scratch().folder("state"), 2048);
    let mut cell = setup.up("rl", &[]);
    let folder = cell.mount().join("folder");
    fs::create_dir(&folder).unwrap();
    let name = |number: u64| format!("{number}");

    let create = counted(cell.mount(), || {
        (0..ENTRIES).for_each(|number| drop(fs::File::create(folder.join(name(number))).unwrap()));
    });
    assert!(create <= ENTRIES + 100, "{create} calls for {ENTRIES} new files");

    let other = setup.mount("other", &[]);
    let seen = other.path().join("folder");
    let list = counted(other.path(), || {
        assert_eq!(names(&seen).len() as u64, ENTRIES);
    });
    // The directory is 2 MB; statuses may be fetched with it, 50 a call.
    assert!(list <= ENTRIES / 50 + 50, "{list} calls to list {ENTRIES} names");
    let look = counted(other.path(), || {
        for number in (0..ENTRIES).step_by(97) {
            assert_eq!(fs::metadata(seen.join(name(number))).unwrap().len(), 0);
            assert!(!seen.join(format!("{number}x")).exists());
        }
    });
    assert!(look <= ENTRIES / 97 + 10, "{look} calls to look at {} files", ENTRIES / 97 + 1);

    let remove = counted(cell.mount(), || {
        (0..ENTRIES).for_each(|number| fs::remove_file(folder.join(name(number))).unwrap());
    });
    assert!(remove <= ENTRIES + 100, "{remove} calls to remove {ENTRIES} files");
    assert_eq!(names(&seen), Vec::<String>::new());
    fs::remove_dir(&folder).unwrap();
    assert_calm(&mut cell);
    drop(other);
    cell.stop();
    drop(disk);
}

fn counted(mount: &Path, work: impl FnOnce()) -> u64 {
    let before = calls(mount);
    work();
    calls(mount) - before
}

/// 64 KiB blocks of a file three times as large as the cache.
const BLOCKS: u64 = 768;
/// Most disk space that a cache of 16 MiB may use while a file passes through it: one more chunk, and its tables.
const CACHE_KIB_MAX: u64 = 24 << 10;
/// Most memory of the client meanwhile.
const MEMORY_KIB_MAX: u64 = 200 << 10;

#[test]
fn a_cache_smaller_than_the_file() {
    if !all_there(&[Need::Fuse]) {
        return;
    }
    let setup = Setup::new("small_cache", 6, seconds(180));
    let mut cell = setup.up("rl", &["--cache-size", "16M"]);
    let other = setup.mount("other", &["--cache-size", "16M"]);
    let file = cell.mount().join("large");
    Pattern(11).write(&file, BLOCKS).unwrap();
    assert_eq!(Pattern(11).check(&other.path().join("large"), BLOCKS).unwrap(), Ok(()));
    let used = kib_below(&setup.scratch().path().join("other.cache"));
    assert!(used < CACHE_KIB_MAX, "a cache of 16 MiB holds {used} KiB");
    // Read back through the mount that wrote it.
    assert_eq!(Pattern(11).check(&file, BLOCKS).unwrap(), Ok(()));

    // Many files that do not fit in the cache together; each must be complete.
    for number in 0..8 {
        Pattern(number).write(&cell.mount().join(format!("{number}")), 80).unwrap();
    }
    for number in 0..8 {
        assert_eq!(Pattern(number).check(&other.path().join(format!("{number}")), 80).unwrap(), Ok(()));
        assert_eq!(Pattern(number).check(&cell.mount().join(format!("{number}")), 80).unwrap(), Ok(()));
    }
    let used = kib_below(&setup.scratch().path().join("other.cache"));
    assert!(used < CACHE_KIB_MAX, "a cache of 16 MiB holds {used} KiB");
    let memory = resident_kib(other.process.pid());
    assert!(memory < MEMORY_KIB_MAX, "a client with a cache of 16 MiB has {memory} KiB of memory");
    assert_calm(&mut cell);
    drop(other);
    cell.stop();
}

/// Disk space used by the files below a folder.
fn kib_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let one = |path: std::path::PathBuf| match fs::symlink_metadata(&path) {
        Ok(status) if status.is_dir() => kib_below(&path),
        Ok(status) => status.blocks() / 2,
        Err(_) => 0,
    };
    entries.map(one).sum()
}
