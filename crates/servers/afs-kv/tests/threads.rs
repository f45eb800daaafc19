//! Concurrency with real threads: several submitters, readers, and checkpoints on other threads of the pool.

// Tests may panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::disallowed_methods, reason = "readers and a writer on threads of their own")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use afs_env::{Job, Parts};
use afs_kv::{Config, Kv, MemoryMedium, Outcome};

const OPERATIONS: u64 = 2000;

fn pool(threads: usize) -> impl Fn(Job) + Send + Sync {
    let (sender, receiver) = channel::<Job>();
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..threads {
        let receiver = receiver.clone();
        thread::spawn(move || {
            loop {
                let job = receiver.lock().unwrap().recv();
                match job {
                    Ok(job) => job(),
                    Err(_) => return,
                }
            }
        });
    }
    let sender = Mutex::new(sender);
    move |job| sender.lock().unwrap().send(job).unwrap()
}

fn count(kv: &Kv, table: &str) -> (u64, u64) {
    let snapshot = kv.snapshot();
    let number = |key: &[u8]| {
        let value = snapshot.get(table, key).unwrap();
        value.map_or(0, |bytes| u64::from_be_bytes(bytes[..].try_into().unwrap()))
    };
    let rows = (std::ops::Bound::Included(&b"row"[..]), std::ops::Bound::Excluded(&b"rox"[..]));
    let rows = snapshot.range(table, rows, false).count() as u64;
    assert_eq!(rows, number(b"count").min(50), "a snapshot shows whole operations only");
    (number(b"count"), number(b"twice"))
}

#[test]
fn readers_see_whole_operations_in_order() {
    let config = Config { log_bytes: 16 << 10, ..Config::default() };
    let kv = Kv::open(
        Arc::new(MemoryMedium::new()),
        &["a"],
        Parts::default().with_blocking(pool(3)).shared(),
        config.clone(),
    )
    .unwrap();
    let over = AtomicBool::new(false);
    let done = Arc::new(AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut seen = 0;
                while !over.load(Ordering::Acquire) {
                    let (count, twice) = count(&kv, "a");
                    assert_eq!(twice, 2 * count);
                    assert!(count >= seen, "time does not go backwards");
                    seen = count;
                }
            });
        }
        let submitters: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..OPERATIONS / 4 {
                        submit(&kv, done.clone());
                    }
                })
            })
            .collect();
        for submitter in submitters {
            submitter.join().unwrap();
        }
        while done.load(Ordering::Acquire) < OPERATIONS {
            thread::yield_now();
        }
        over.store(true, Ordering::Release);
    });
    assert_eq!(count(&kv, "a"), (OPERATIONS, 2 * OPERATIONS));
}

fn submit(kv: &Kv, done: Arc<AtomicU64>) {
    kv.submit(
        Box::new(|txn| {
            let count = txn.get("a", b"count").unwrap();
            let next = 1 + count.map_or(0, |bytes| u64::from_be_bytes(bytes[..].try_into().unwrap()));
            txn.put("a", b"count", next.to_be_bytes().to_vec());
            txn.put("a", b"twice", (2 * next).to_be_bytes().to_vec());
            txn.put("a", format!("row{}", next % 50).as_bytes(), vec![1; 30]);
            Ok(())
        }),
        Box::new(move |outcome| {
            assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
            done.fetch_add(1, Ordering::AcqRel);
        }),
    );
}
