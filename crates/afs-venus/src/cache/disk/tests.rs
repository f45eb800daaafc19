//! Tests of the disk cache: after a panic, and the time to open one of many files.

use std::panic::{AssertUnwindSafe, catch_unwind};

use afs_wire::ids::{DataVersion, Uniquifier, VnodeId, VolumeId};

use super::*;
use crate::cache::Ranges;

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
        let opened = DiskCache::open(dir.path(), 1 << 40, "this boot").unwrap();
        println!("a cache of {FILES} files that was {how}: {:?}", begun.elapsed());
        assert!(opened.find(&named(FILES - 1)).is_some());
        cache = Some(opened);
    }
}
