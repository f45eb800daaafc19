//! Test of the disk cache after a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

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
