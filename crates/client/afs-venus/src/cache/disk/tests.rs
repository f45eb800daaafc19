//! Tests of the disk cache: after a panic, and the time to open one of many files.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use afs_wire::ids::{DataVersion, Uniquifier, VnodeId, VolumeId};
use rustix::fs::inotify;

use super::*;
use crate::cache::{OfflineObject, Ranges};

#[test]
fn a_panic_under_the_lock_does_not_make_the_cache_look_busy_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(dir.path(), 1 << 20, "").unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _state = cache.state.lock();
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    let cell = CellName::new("example.org").unwrap();
    assert!(!cache.may_have(&cell, Fid::default()), "a busy cache may have anything");
}

fn key(vnode: u32) -> CacheKey {
    CacheKey {
        cell: CellName::new("example.org").unwrap(),
        fid: Fid::new(VolumeId(7), VnodeId(vnode), Uniquifier(1)),
        version: DataVersion(1),
    }
}

fn keep(cache: &DiskCache, vnode: u32, data: &[u8]) -> u64 {
    let file = cache.create().unwrap();
    file.write_at(0, data).unwrap();
    let length = data.len() as u64;
    cache
        .keep(&key(vnode), &file, &Kept { length, present: Ranges::whole(length), holes: Ranges::new() })
        .unwrap();
    file.id()
}

#[test]
fn files_that_are_closed_without_being_kept_leave_nothing_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(dir.path(), 1 << 20, "").unwrap();
    let held: Vec<_> = (0..10).map(|_| cache.create().unwrap()).collect();
    for _ in 0..1000 {
        cache.create().unwrap();
        assert!(cache.state.lock().open.len() <= OPEN_SWEPT_MIN);
    }
    let state = cache.state.lock();
    assert!(held.iter().all(|file| state.open.contains_key(&file.id())), "they are in use");
}

#[test]
fn kept_files_are_bounded_in_number_however_small_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(dir.path(), 1 << 20, "").unwrap();
    cache.state.lock().files_max = 128;
    for vnode in 1..=300 {
        keep(&cache, vnode, b"");
        assert!(cache.make_room(0) && cache.state.lock().kept.files() <= 128);
    }
    assert!(cache.find(&key(300)).is_some() && cache.find(&key(1)).is_none(), "the oldest went");
    assert!(cache.state.lock().kept.files() > 100, "and few at a time");
}

/// Harms a file; the second one is an older copy.
type Harm = fn(&Path, &Path);

/// What may happen to a file while no process uses the cache.
const DAMAGES: [(&str, Harm); 6] = [
    ("missing", |path, _| fs::remove_file(path).unwrap()),
    ("emptied", |path, _| fs::File::options().write(true).open(path).unwrap().set_len(0).unwrap()),
    ("zeroed", |path, _| fs::write(path, vec![0; fs::metadata(path).unwrap().len() as usize]).unwrap()),
    ("cut in half", |path, _| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    }),
    ("one bit flipped", |path, _| {
        let mut bytes = fs::read(path).unwrap();
        bytes[3] ^= 1;
        fs::write(path, bytes).unwrap();
    }),
    ("an older copy", |path, older| fs::rename(older, path).unwrap()),
];

#[test]
fn a_file_that_was_changed_while_the_cache_was_not_in_use_is_not_served() {
    for (damage, harm) in DAMAGES {
        for is_orderly in [false, true] {
            let (dir, before) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let cache = DiskCache::open(dir.path(), 1 << 20, "boot").unwrap();
            let (harmed, whole) =
                (keep(&cache, 2, b"to be damaged"), keep(&cache, 4, b"nobody touches this"));
            let path = path_of(dir.path(), harmed);
            let older = before.path().join("older");
            fs::write(&older, b"was something").unwrap();
            let an_hour_ago =
                fs::metadata(&path).unwrap().modified().unwrap() - std::time::Duration::from_secs(3600);
            fs::File::open(&older)
                .unwrap()
                .set_modified(an_hour_ago - std::time::Duration::from_secs(9))
                .unwrap();
            // Files that are kept for some time.
            for (vnode, number) in [(2, harmed), (4, whole)] {
                fs::File::open(path_of(dir.path(), number)).unwrap().set_modified(an_hour_ago).unwrap();
                let (file, kept) = cache.find(&key(vnode)).unwrap();
                cache.keep(&key(vnode), &file, &kept).unwrap();
            }
            if is_orderly {
                cache.shut_down().unwrap();
            }
            drop(cache);
            harm(&path, &older);
            let cache = DiskCache::open(dir.path(), 1 << 20, "boot").unwrap();
            assert_eq!(cache.find(&key(2)).map(|(file, _)| file.read_at(0, 99).unwrap()), None, "{damage}");
            let (file, _) = cache.find(&key(4)).unwrap();
            assert_eq!(file.read_at(0, 99).unwrap(), &b"nobody touches this"[..], "{damage}");
            assert!(!path.exists(), "{damage}");
        }
    }
}

/// A record of a pinned object.
fn offline(promised_at: u32) -> OfflineRecord {
    let status = afs_wire::fs::Status { kind: afs_wire::fs::FileKind::File, ..Default::default() };
    let promised_at = afs_wire::ids::UnixSeconds(promised_at);
    let (link, readers) = (::bytes::Bytes::new(), Vec::new());
    OfflineRecord::Object(OfflineObject { status, promised_at, link, readers })
}

#[test]
fn records_of_pinned_objects_outlive_a_kill_a_rewritten_index_and_no_end_of_theirs() {
    let dir = tempfile::tempdir().unwrap();
    let open = || DiskCache::open(dir.path(), 1 << 20, "boot").unwrap();
    let (cache, cell) = (open(), key(0).cell);
    for now in 0..2000 {
        cache.keep_offline(&cell, key(2).fid, offline(now)).unwrap();
    }
    cache.keep_offline(&cell, key(4).fid, offline(7)).unwrap();
    cache.keep_offline(&cell, key(6).fid, offline(7)).unwrap();
    cache.forget_offline(&cell, key(6).fid);
    let length = fs::metadata(dir.path().join("index")).unwrap().len();
    assert!(length < 1500 * 160, "the index was rewritten: {length} bytes");
    drop(cache);
    let cache = open();
    let kept = |vnode| cache.offline(&cell, key(vnode).fid);
    assert_eq!((kept(2), kept(4), kept(6)), (Some(offline(1999)), Some(offline(7)), None));
    assert_eq!(cache.offline_names().len(), 2);
}

/// What a killed process leaves: a file that no index names.
fn leave_orphan(dir: &Path, number: u64) -> PathBuf {
    let path = path_of(dir, number);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, b"orphan").unwrap();
    path
}

#[test]
fn a_sweep_beside_the_use_of_the_cache_removes_what_earlier_runs_left_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(dir.path(), 1 << 20, "boot").unwrap();
    let known = keep(&cache, 2, b"kept before");
    keep(&cache, 4, b"kept before, forgotten during");
    let orphan = leave_orphan(dir.path(), known + 100);
    drop(cache);
    let (cache, sweeper) = DiskCache::open_unswept(dir.path(), 1 << 20, "boot", None).unwrap();
    let (forgotten, _) = cache.find(&key(4)).unwrap();
    cache.forget(&key(4).cell, key(4).fid);
    keep(&cache, 6, b"kept after");
    let unkept = cache.create().unwrap();
    unkept.write_at(0, b"not kept yet").unwrap();
    assert_eq!(sweeper.sweep().unwrap(), 1);
    assert!(!orphan.exists());
    assert_eq!(cache.find(&key(2)).unwrap().0.read_at(0, 99).unwrap(), &b"kept before"[..]);
    assert_eq!(cache.find(&key(6)).unwrap().0.read_at(0, 99).unwrap(), &b"kept after"[..]);
    assert_eq!(forgotten.read_at(0, 4).unwrap(), &b"kept"[..]);
    assert!(path_of(dir.path(), unkept.id()).exists());
}

#[test]
fn a_new_file_has_no_number_of_a_file_that_an_earlier_run_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut orphans = Vec::new();
    for _ in 0..3 {
        let (cache, sweeper) = DiskCache::open_unswept(dir.path(), 1 << 20, "boot", None).unwrap();
        let number = cache.create().unwrap().id();
        assert!(orphans.iter().all(|path: &PathBuf| *path != path_of(dir.path(), number)));
        orphans.push(leave_orphan(dir.path(), number));
        drop(sweeper);
    }
    fs::remove_file(dir.path().join("run")).unwrap();
    let cache = DiskCache::open(dir.path(), 1 << 20, "boot").unwrap();
    assert!(orphans.iter().any(|path| path.exists()), "without the number of the run its files look new");
    drop(cache);
    for _ in 0..3 {
        drop(DiskCache::open(dir.path(), 1 << 20, "boot").unwrap());
    }
    assert!(orphans.iter().all(|path| !path.exists()), "later runs sweep them");
}

#[test]
fn a_damaged_number_of_a_run_loses_no_kept_file() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(dir.path(), 1 << 20, "boot").unwrap();
    keep(&cache, 2, b"kept");
    drop(cache);
    let (most, beyond) = (u64::MAX.to_string(), (1 << 24).to_string());
    for text in ["", "not a number", "-1", "0", &most, &beyond] {
        fs::write(dir.path().join("run"), text).unwrap();
        let cache = DiskCache::open(dir.path(), 1 << 20, "boot").unwrap();
        assert!(cache.find(&key(2)).is_some(), "{text:?}");
    }
    fs::remove_file(dir.path().join("run")).unwrap();
    let cache = DiskCache::open(dir.path(), 1 << 20, "boot").unwrap();
    assert!(cache.find(&key(2)).is_some());
}

/// Names of what was opened, read, made or removed in watched directories since the last call.
fn touched(watch: &rustix::fd::OwnedFd) -> BTreeSet<String> {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 64 << 10];
    let mut events = inotify::Reader::new(watch, &mut buffer);
    let mut names = BTreeSet::new();
    while let Ok(event) = events.next() {
        names.insert(event.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()));
    }
    names
}

/// The work of a start, in place of its time: 20,000 records, and not one of the directories or files of data.
#[test]
fn the_start_of_a_full_cache_reads_the_index_and_opens_no_data() {
    const FILES: u32 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(dir.path(), 1 << 40, "boot").unwrap();
    let kept = Kept { length: 0, present: Ranges::new(), holes: Ranges::new() };
    // One in each directory. More would cost the test time, and a start that opened data would open these.
    let files: Vec<_> = (0..256).map(|_| cache.create().unwrap()).collect();
    for n in 0..FILES {
        cache.keep(&key(2 * n), &files[n as usize % files.len()], &kept).unwrap();
    }
    drop((cache, files));
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
    let data = dir.path().join("data");
    let below = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path());
    for path in below.chain([data.clone()]) {
        inotify::add_watch(&watch, path, inotify::WatchFlags::ALL_EVENTS).unwrap();
    }
    touched(&watch);
    let (cache, sweeper) = DiskCache::open_unswept(dir.path(), 1 << 40, "boot", None).unwrap();
    assert!((0..FILES).all(|n| cache.may_have(&key(0).cell, key(2 * n).fid)));
    assert_eq!(touched(&watch), BTreeSet::new());
    // The sweep reads the directories, which is why it has its place beside the use of the cache.
    assert_eq!(sweeper.sweep().unwrap(), 0);
    assert_ne!(touched(&watch), BTreeSet::new());
}

/// Prints how long a cache of a million files takes to open. Run by hand:
/// `cargo test --release -p afs-venus --lib a_million -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes, and a million inodes"]
#[allow(clippy::disallowed_methods, reason = "what is measured is the time of this machine")]
fn a_cache_of_a_million_files_is_opened() {
    const FILES: u32 = 1_000_000;
    let dir = tempfile::tempdir().unwrap();
    let cell = CellName::new("example.org").unwrap();
    let named = |n: u32| CacheKey {
        cell: cell.clone(),
        fid: Fid::new(VolumeId(7), VnodeId(2 * n + 2), Uniquifier(1)),
        version: DataVersion(1),
    };
    let cache = DiskCache::open(dir.path(), 1 << 40, "this boot").unwrap();
    let kept = Kept { length: 0, present: Ranges::new(), holes: Ranges::new() };
    for n in 0..FILES {
        let file = cache.create().unwrap();
        cache.keep(&named(n), &file, &kept).unwrap();
    }
    let how_it_ended: [(&str, bool); 2] = [("killed", false), ("shut down in order", true)];
    let mut cache = Some(cache);
    for (how, in_order) in how_it_ended {
        if let Some(cache) = cache.take().filter(|_| in_order) {
            cache.shut_down().unwrap();
        }
        let begun = std::time::Instant::now();
        let (opened, sweeper) = DiskCache::open_unswept(dir.path(), 1 << 40, "this boot", None).unwrap();
        let opening = begun.elapsed();
        assert_eq!(sweeper.sweep().unwrap(), 0);
        println!(
            "a cache of {FILES} files that was {how}: open after {opening:?}, swept after {:?}",
            begun.elapsed()
        );
        assert!(opened.find(&named(FILES - 1)).is_some());
        cache = Some(opened);
    }
}

#[test]
fn files_made_one_after_the_other_are_in_one_directory_of_bounded_many() {
    let dir_of = |id| path_of(Path::new("cache"), id).parent().map(Path::to_owned);
    let first = 7 << 40;
    assert!((first..first + 256).all(|id| dir_of(id) == dir_of(first)));
    let all: std::collections::BTreeSet<_> = (first..first + (1 << 17)).map(dir_of).collect();
    assert_eq!(all.len(), 256);
}
