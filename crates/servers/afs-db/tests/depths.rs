//! Look-ups in the embedded store: what is in memory is answered at once, the rest on a thread that may wait
//! for a disk.

#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use afs_db::{EmbeddedLocationDb, EmbeddedProtectionDb, EntryKey, LocationDb, Proposal, ProposedSite};
use afs_db::{ProtectionDb, TABLES, bootstrap_protection, entry_flags};
use afs_kv::{Config, Kv, MemoryMedium};
use afs_rpc::{EnvRef, Parts, Terms};
use afs_wire::ids::VolumeId;

type Jobs = Arc<Mutex<Vec<Box<dyn FnOnce() + Send>>>>;

/// An environment whose blocking work waits in a list.
fn with_list() -> (EnvRef, Jobs) {
    let jobs = Jobs::default();
    let kept = jobs.clone();
    (Parts::default().with_blocking(move |job| kept.lock().unwrap().push(job)).shared(), jobs)
}

fn open(medium: &MemoryMedium, env: EnvRef) -> Kv {
    Kv::open(Arc::new(medium.clone()), TABLES, env, Config::default()).unwrap()
}

/// The result, and how often a thread that may wait for a disk had to work for it.
fn answer<T>(future: impl Future<Output = T>, jobs: &Jobs) -> (T, usize) {
    let mut future = std::pin::pin!(future);
    for count in 0.. {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return (done, count);
        }
        let job = jobs.lock().unwrap().pop().unwrap();
        job();
    }
    unreachable!("it is ready some time")
}

fn proposal(name: &str, id: u32) -> Proposal {
    Proposal {
        name: name.into(),
        ids: [VolumeId(id), VolumeId(0), VolumeId(0)],
        clone: VolumeId(0),
        flags: entry_flags::RW_EXISTS,
        sites: vec![ProposedSite { address: Ipv4Addr::new(10, 0, 0, 1), partition: 0, flags: 4 }],
    }
}

#[test]
fn a_volume_is_looked_for_on_the_disk_once_for_each_state_of_the_store() {
    let (medium, none) = (MemoryMedium::default(), Jobs::default());
    answer(EmbeddedLocationDb::new(open(&medium, Parts::inline())).create(proposal("first", 7)), &none)
        .0
        .unwrap();

    // Opening checkpoints the log, so that nothing is in memory.
    let (env, jobs) = with_list();
    let db = EmbeddedLocationDb::new(open(&medium, env));
    let look = |name: &str| {
        let (located, hand_overs) = answer(db.entry(EntryKey::Name(name.into())), &jobs);
        (located.map(|located| located.entry.ids[0].0), hand_overs)
    };
    assert_eq!(look("first"), (Ok(7), 1));
    assert_eq!(look("first"), (Ok(7), 0));
    let (_, missing) = (look("second"), look("second"));
    assert_eq!((missing.0.is_err(), missing.1), (true, 0), "that there is none is known too");

    answer(db.create(proposal("second", 8)), &jobs).0.unwrap();
    assert_eq!(look("first"), (Ok(7), 1));
    assert_eq!(look("second"), (Ok(8), 0));
}

#[test]
fn a_user_is_looked_for_on_the_disk_once() {
    let medium = MemoryMedium::default();
    let db: Arc<dyn ProtectionDb> = Arc::new(EmbeddedProtectionDb::new(open(&medium, Parts::inline())));
    answer(bootstrap_protection(&*db, "admin"), &Jobs::default()).0.unwrap();
    drop(db);

    let (env, jobs) = with_list();
    let db = EmbeddedProtectionDb::new(open(&medium, env));
    let (ids, hand_overs) = answer(db.ids_of(vec!["admin".into()]), &jobs);
    let admin = ids.unwrap()[0].unwrap();
    assert_eq!(hand_overs, 1);
    let (groups, hand_overs) = answer(db.cps(admin, Terms::default()), &jobs);
    assert_eq!((groups.clone().unwrap().is_empty(), hand_overs), (false, 1));
    assert_eq!(answer(db.cps(admin, Terms::default()), &jobs), (groups, 0));
}
