//! Parts of an operation: each takes effect as a whole or not at all, and the operation goes on.

// Tests may panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use afs_env::Parts;
use afs_kv::{Config, Kv, KvError, MemoryMedium, Txn};

type Rows = BTreeMap<u8, u8>;

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("work done at once leaves nothing pending"),
    }
}

fn open() -> Kv {
    Kv::open(Arc::new(MemoryMedium::new()), &["t"], Parts::inline(), Config::default()).unwrap()
}

fn rows(txn: &Txn<'_>) -> Rows {
    txn.range("t", .., false).map(|row| row.map(|(key, value)| (key[0], value[0])).unwrap()).collect()
}

#[test]
fn a_failed_part_leaves_nothing_and_the_others_stay() {
    let (kv, ran) = (open(), Arc::new(Mutex::new(Vec::new())));
    let note = |what| {
        let ran = ran.clone();
        move |_| ran.lock().unwrap().push(what)
    };
    let (first, failed, inner) = (note("first"), note("failed"), note("inner"));
    now(kv.update(|txn| {
        txn.put("t", &[1], vec![1]);
        txn.put("t", &[2], vec![1]);
        txn.part(|txn| {
            txn.put("t", &[3], vec![2]);
            txn.before_visible(first);
            Ok::<_, KvError>(())
        })?;
        let refused = txn.part(|txn| {
            txn.put("t", &[1], vec![9]);
            txn.put("t", &[1], vec![8]);
            txn.delete("t", &[2]);
            txn.part(|txn| {
                txn.put("t", &[4], vec![9]);
                txn.before_visible(inner);
                Ok::<_, &str>(())
            })?;
            txn.before_visible(failed);
            Err::<(), _>("refused")
        });
        assert_eq!(refused, Err("refused"));
        assert_eq!(rows(txn), Rows::from([(1, 1), (2, 1), (3, 2)]));
        Ok::<_, KvError>(())
    }))
    .unwrap();
    assert_eq!(*ran.lock().unwrap(), ["first"]);
    assert_eq!(kv.snapshot().get("t", &[1]).unwrap().unwrap(), &[1][..]);
    assert_eq!(kv.snapshot().get("t", &[4]).unwrap(), None);
}

/// A map that is copied before each part, and put back where the part fails.
#[test]
fn random_parts_within_parts_leave_what_a_model_has() {
    let kv = open();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..300 {
        let mut seed = random;
        random = step(&mut seed);
        let (shown, expected) = now(kv.update(move |txn| {
            let mut model = rows(txn);
            run(txn, &mut model, &mut seed, 0);
            Ok::<_, KvError>((rows(txn), model))
        }))
        .unwrap();
        assert_eq!(shown, expected);
        let kept: Rows = kv
            .snapshot()
            .range("t", .., false)
            .map(|row| row.unwrap())
            .map(|(key, value)| (key[0], value[0]))
            .collect();
        assert_eq!(kept, expected);
    }
}

fn run(txn: &mut Txn<'_>, model: &mut Rows, seed: &mut u64, depth: u32) {
    for _ in 0..step(seed) % 8 {
        let [what, key, value, fails, ..] = step(seed).to_le_bytes();
        let key = key % 6;
        match what % 4 {
            0 if depth < 3 => {
                let before = model.clone();
                let part = txn.part(|txn| {
                    run(txn, model, seed, depth + 1);
                    if fails % 2 == 0 { Err(()) } else { Ok(()) }
                });
                if part.is_err() {
                    *model = before;
                }
            }
            1 => {
                txn.delete("t", &[key]);
                model.remove(&key);
            }
            _ => {
                txn.put("t", &[key], vec![value]);
                model.insert(key, value);
            }
        }
    }
}

/// xorshift64.
fn step(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}
