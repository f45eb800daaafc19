//! Verification of the index of an open store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afs_env::Parts;
use afs_kv::{Config, Kv, KvError, Medium, MemoryMedium};

fn open(medium: &MemoryMedium) -> Kv {
    Kv::open(Arc::new(medium.clone()), &["a"], Parts::inline(), Config::default()).unwrap()
}

fn put(kv: &Kv, round: u32, count: u32) {
    for number in 0..count {
        let (key, value) = (number.to_be_bytes().to_vec(), [round.to_be_bytes(); 50].concat());
        kv.submit(
            Box::new(move |txn| {
                txn.put("a", &key, value);
                Ok(())
            }),
            Box::new(|_| {}),
        );
    }
    kv.checkpoint().unwrap();
}

/// A disk that changes a byte under a store that is open.
#[test]
fn a_page_that_is_changed_under_an_open_store_is_found() {
    let medium = MemoryMedium::new();
    let kv = open(&medium);
    put(&kv, 1, 3000);
    let index = medium.open("index").unwrap();
    let len = index.len().unwrap();
    let mut found = 0;
    for at in (0..len).step_by(10_007) {
        let mut byte = [0];
        index.read_at(at, &mut byte).unwrap();
        index.write_at(at, &[byte[0] ^ 4]).unwrap();
        match kv.verify_index() {
            Err(KvError::Corrupt(_)) => found += 1,
            other => other.unwrap(),
        }
        index.write_at(at, &byte).unwrap();
    }
    // The file has room that no page uses.
    assert!(found > 30, "{found} of {}", len / 10_007);
    kv.verify_index().unwrap();
}

#[test]
fn a_sound_index_is_found_sound_while_checkpoints_change_it() {
    let medium = MemoryMedium::new();
    let kv = open(&medium);
    put(&kv, 0, 2000);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let verified = scope.spawn(|| {
            let mut rounds = 0;
            while !is_over.load(Ordering::SeqCst) || rounds < 5 {
                kv.verify_index().unwrap();
                rounds += 1;
            }
        });
        (1..60).for_each(|round| put(&kv, round, 500 + 40 * round));
        is_over.store(true, Ordering::SeqCst);
        verified.join().unwrap();
    });
}
