//! Tests of the store without faults.

// Tests may panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::future::Future;
use std::ops::Bound;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use afs_env::{Job, Parts};
use afs_kv::{
    Config, Done, FileMedium, Kv, KvError, Medium, MemoryMedium, OpenError, Outcome, Txn, UpdateError,
};

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("work done at once leaves nothing pending"),
    }
}

fn open(medium: &MemoryMedium) -> Kv {
    Kv::open(Arc::new(medium.clone()), &["a", "b"], Parts::inline(), Config::default()).unwrap()
}

fn put(kv: &Kv, table: &'static str, key: &'static [u8], value: &'static [u8]) {
    now(kv.update(move |txn| {
        txn.put(table, key, value);
        Ok::<_, KvError>(())
    }))
    .unwrap();
}

fn keys(rows: afs_kv::Range<'_>) -> Vec<Vec<u8>> {
    rows.map(|row| row.unwrap().0.to_vec()).collect()
}

#[test]
fn reads_span_all_layers_in_order() {
    let medium = MemoryMedium::new();
    let kv = open(&medium);
    put(&kv, "a", b"1", b"base");
    put(&kv, "a", b"3", b"base");
    put(&kv, "a", b"5", b"base");
    put(&kv, "b", b"2", b"other table");
    kv.checkpoint().unwrap();
    put(&kv, "a", b"2", b"memory");
    put(&kv, "a", b"3", b"memory");
    now(kv.update(|txn| {
        txn.delete("a", b"5");
        txn.put("a", b"4", &b"own"[..]);
        let order: Vec<_> = keys(txn.range("a", .., false));
        assert_eq!(order, [b"1", b"2", b"3", b"4"]);
        assert_eq!(keys(txn.range("a", .., true)), [b"4", b"3", b"2", b"1"]);
        assert_eq!(txn.get("a", b"3")?.unwrap(), &b"memory"[..]);
        assert_eq!(txn.last_at_or_before("a", b"0", b"5")?.unwrap().1, &b"own"[..]);
        assert_eq!(txn.last_at_or_before("a", b"5", b"9")?, None);
        Ok::<_, KvError>(())
    }))
    .unwrap();
    let snapshot = kv.snapshot();
    let from_two = (Bound::Excluded(&b"1"[..]), Bound::Included(&b"3"[..]));
    assert_eq!(keys(snapshot.range("a", from_two, false)), [b"2", b"3"]);
    assert_eq!(keys(snapshot.range("b", .., true)), [b"2"]);
    let nothing = (Bound::Excluded(&b"3"[..]), Bound::Excluded(&b"3"[..]));
    assert_eq!(snapshot.range("a", nothing, false).count(), 0);
}

#[test]
fn an_operation_that_arrives_while_a_batch_runs_shares_its_flush() {
    let jobs = Arc::new(Mutex::new(Vec::<Job>::new()));
    let queue = jobs.clone();
    let env = Parts::default().with_blocking(move |job| queue.lock().unwrap().push(job)).shared();
    let kv = Kv::open(Arc::new(MemoryMedium::new()), &["a"], env, Config::default()).unwrap();
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let note = |outcomes: &Arc<Mutex<Vec<Outcome>>>| -> Done {
        let outcomes = outcomes.clone();
        Box::new(move |outcome| outcomes.lock().unwrap().push(outcome))
    };
    let (during, done) = (kv.clone(), note(&outcomes));
    let first = move |txn: &mut Txn<'_>| {
        txn.put("a", b"1", &b"first"[..]);
        let second = |txn: &mut Txn<'_>| {
            assert!(txn.get("a", b"1").unwrap().is_some());
            txn.put("a", b"2", &b"second"[..]);
            Ok(())
        };
        during.submit(Box::new(second), done);
        Ok(())
    };
    kv.submit(Box::new(first), note(&outcomes));
    let job = jobs.lock().unwrap().pop().unwrap();
    job();
    let outcomes = outcomes.lock().unwrap();
    assert!(matches!(outcomes[..], [Outcome::Committed(1), Outcome::Committed(1)]), "{outcomes:?}");
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let kv = open(&MemoryMedium::new());
    put(&kv, "a", b"k", b"old");
    let before = kv.snapshot();
    put(&kv, "a", b"k", b"new");
    put(&kv, "a", b"k2", b"new");
    kv.checkpoint().unwrap();
    put(&kv, "a", b"k", b"newer");
    kv.checkpoint().unwrap();
    assert_eq!(before.get("a", b"k").unwrap().unwrap(), &b"old"[..]);
    assert_eq!(before.get("a", b"k2").unwrap(), None);
    assert_eq!(keys(before.range("a", .., false)), [b"k"]);
    assert_eq!(kv.snapshot().get("a", b"k").unwrap().unwrap(), &b"newer"[..]);
    assert_eq!(kv.oldest_snapshot(), before.sequence());
    drop(before);
    assert_eq!(kv.oldest_snapshot(), 4);
}

#[test]
fn an_abandoned_operation_leaves_nothing_and_disturbs_nobody() {
    let held: Arc<Mutex<Vec<Job>>> = Arc::default();
    let keep = held.clone();
    let env = Parts::default().with_blocking(move |job| keep.lock().unwrap().push(job)).shared();
    let kv = Kv::open(Arc::new(MemoryMedium::new()), &["a"], env, Config::default()).unwrap();
    let one = kv.update(|txn: &mut Txn<'_>| {
        txn.put("a", b"1", &b"x"[..]);
        Ok::<_, KvError>(())
    });
    let two = kv.update(|txn: &mut Txn<'_>| {
        assert!(txn.get("a", b"1").unwrap().is_some(), "the earlier operation of the batch is seen");
        txn.put("a", b"2", &b"x"[..]);
        txn.before_visible(|_| panic!("not for an abandoned operation"));
        Err::<(), _>("no")
    });
    let hooked = Arc::new(Mutex::new(0));
    let hook = hooked.clone();
    let three = kv.update(move |txn: &mut Txn<'_>| {
        assert!(txn.get("a", b"2").unwrap().is_none());
        txn.put("a", b"3", &b"x"[..]);
        txn.before_visible(move |sequence| *hook.lock().unwrap() = sequence);
        Ok::<_, KvError>(txn.sequence())
    });
    let (mut one, mut two, mut three) = (pin!(one), pin!(two), pin!(three));
    let mut context = Context::from_waker(Waker::noop());
    assert!(one.as_mut().poll(&mut context).is_pending());
    assert!(two.as_mut().poll(&mut context).is_pending());
    assert!(three.as_mut().poll(&mut context).is_pending());
    assert_eq!(kv.snapshot().get("a", b"1").unwrap(), None, "nothing is visible before it is durable");
    let jobs = std::mem::take(&mut *held.lock().unwrap());
    assert_eq!(jobs.len(), 1, "one drain for all three");
    jobs.into_iter().for_each(|job| job());
    assert!(matches!(one.poll(&mut context), Poll::Ready(Ok(()))));
    assert!(matches!(two.poll(&mut context), Poll::Ready(Err(UpdateError::Refused("no")))));
    assert!(matches!(three.poll(&mut context), Poll::Ready(Ok(1))));
    assert_eq!(*hooked.lock().unwrap(), 1);
    assert_eq!(keys(kv.snapshot().range("a", .., false)), [b"1", b"3"]);
}

#[test]
fn too_large_an_operation_is_refused_alone() {
    let kv = open(&MemoryMedium::new());
    let answer = now(kv.update(|txn| {
        txn.put("a", b"k", vec![0; 33 << 20]);
        Ok::<_, KvError>(())
    }));
    assert!(matches!(answer, Err(UpdateError::Kv(KvError::TooLarge(_)))));
    put(&kv, "a", b"k", b"v");
}

#[test]
fn files_keep_the_store_and_belong_to_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    for round in 0..3u8 {
        let medium = Arc::new(FileMedium::open(&path).unwrap());
        assert_eq!(FileMedium::open(&path).err().unwrap().kind(), std::io::ErrorKind::ResourceBusy);
        let kv = Kv::open(medium, &["a"], Parts::inline(), Config::default()).unwrap();
        assert_eq!(kv.snapshot().range("a", .., false).count(), usize::from(round));
        now(kv.update(move |txn| {
            txn.put("a", &[round], vec![round]);
            Ok::<_, KvError>(())
        }))
        .unwrap();
        if round == 1 {
            kv.checkpoint().unwrap();
        }
    }
}

#[test]
fn tables_may_be_added_and_keep_their_rows() {
    let medium = MemoryMedium::new();
    put(&open(&medium), "b", b"k", b"v");
    let reordered = &["c", "b", "a"];
    let kv = Kv::open(Arc::new(medium), reordered, Parts::inline(), Config::default()).unwrap();
    assert_eq!(kv.snapshot().get("b", b"k").unwrap().unwrap(), &b"v"[..]);
    assert_eq!(kv.snapshot().get("c", b"k").unwrap(), None);
}

#[test]
fn a_file_that_is_no_index_is_refused() {
    let medium = MemoryMedium::new();
    medium.open("index").unwrap().write_at(0, &[7; 8192]).unwrap();
    let error = Kv::open(Arc::new(medium), &["a"], Parts::inline(), Config::default()).err().unwrap();
    assert!(matches!(error, OpenError::NotAStore), "{error}");
    // An index whose beginning is missing is not taken for a new one.
    let medium = MemoryMedium::new();
    put(&open(&medium), "a", b"k", b"v");
    medium.open("index").unwrap().write_at(0, &[0; 512]).unwrap();
    let error = Kv::open(Arc::new(medium), &["a"], Parts::inline(), Config::default()).err().unwrap();
    assert!(matches!(error, OpenError::Kv(KvError::Corrupt(_))), "{error}");
}

#[test]
fn a_panic_in_an_operation_harms_only_its_batch() {
    let kv = open(&MemoryMedium::new());
    put(&kv, "a", b"1", b"x");
    let panicking = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        now(kv.update(|_| -> Result<(), KvError> { panic!("a mistake") }))
    }));
    assert!(panicking.is_err());
    put(&kv, "a", b"2", b"x");
    assert_eq!(keys(kv.snapshot().range("a", .., false)), [b"1", b"2"]);
}

#[test]
fn a_batch_whose_hook_panics_is_durable_and_the_next_has_a_number_of_its_own() {
    let medium = MemoryMedium::new();
    let kv = open(&medium);
    put(&kv, "a", b"1", b"x");
    let ran = Arc::new(Mutex::new(0));
    let count = ran.clone();
    let panicking = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        now(kv.update(move |txn| {
            txn.put("a", b"2", &b"x"[..]);
            txn.before_visible(|_| panic!("a mistake"));
            txn.before_visible(move |_| *count.lock().unwrap() += 1);
            Ok::<_, KvError>(())
        }))
    }));
    assert!(panicking.is_err());
    assert_eq!(*ran.lock().unwrap(), 1);
    put(&kv, "a", b"3", b"x");
    assert_eq!(keys(kv.snapshot().range("a", .., false)), [b"1", b"2", b"3"]);
    assert_eq!(kv.snapshot().sequence(), 3);
    drop(kv);
    assert_eq!(keys(open(&medium).snapshot().range("a", .., false)), [b"1", b"2", b"3"]);
}
