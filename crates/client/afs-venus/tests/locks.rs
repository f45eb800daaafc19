//! Locks on ranges of a file, held by processes of two machines.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_venus::{Backing, DiskCache, HandleId, LockHolder, LockKind, LockRange, NodeId, OpenFlags, Result};
use bytes::Bytes;
use common::{Cell, Client};

/// The byte that is locked for writing.
const TURN: LockRange = LockRange { first: 100, last: 100 };
/// The bytes that readers lock.
const SHARED: LockRange = LockRange { first: 200, last: 299 };
/// Offset of the counter.
const COUNTER: u64 = 5000;

/// A process that has the file open, with or without passthrough.
struct Process {
    client: Client,
    handle: HandleId,
    backing: Option<Backing>,
    owner: u64,
}

impl Process {
    async fn open(client: &Client, owner: u64, passthrough: bool) -> Process {
        let entry = client.find("file").await.unwrap();
        let flags = OpenFlags { passthrough, ..OpenFlags::READ_WRITE };
        let opened = client.venus.open(entry.node, flags).await.unwrap();
        Process { client: client.clone(), handle: opened.handle, backing: opened.backing, owner }
    }

    async fn lock(&self, range: LockRange, kind: LockKind, wait: bool) -> Result<()> {
        self.client.venus.lock(self.handle, self.owner, 1, range, kind, wait).await
    }

    async fn unlock(&self, range: LockRange) {
        self.client.venus.unlock(self.handle, self.owner, range).await.unwrap();
    }

    /// The holder that F_GETLK for a write lock would return.
    async fn conflicting_holder(&self) -> Option<LockHolder> {
        self.client.venus.test_lock(self.handle, self.owner, TURN, LockKind::Write).await.unwrap()
    }

    async fn read(&self) -> u64 {
        let mut bytes = [0; 8];
        match &self.backing {
            Some(backing) => drop(backing.file.read_at(&mut bytes, COUNTER).unwrap()),
            None => {
                let read = self.client.venus.read(self.handle, COUNTER, 8).await.unwrap();
                bytes[..read.len()].copy_from_slice(&read);
            }
        }
        u64::from_be_bytes(bytes)
    }

    async fn write(&self, value: u64) {
        let bytes = value.to_be_bytes();
        match &self.backing {
            Some(backing) => backing.file.write_all_at(&bytes, COUNTER).unwrap(),
            None => drop(
                self.client.venus.write(self.handle, COUNTER, Bytes::copy_from_slice(&bytes)).await.unwrap(),
            ),
        }
    }

    /// Adds one under a lock on a range.
    async fn add_under_a_write_lock(&self) {
        self.lock(TURN, LockKind::Write, true).await.unwrap();
        let value = self.read().await;
        self.client.env.sleep(Duration::from_millis(self.client.env.random_u64() % 50)).await;
        self.write(value + 1).await;
        self.unlock(TURN).await;
    }

    /// Adds one as a database does: the value read under a shared lock is used once the write lock is granted too;
    /// otherwise everything is released and tried again.
    async fn add_under_a_lock_to_read_and_then_to_write(&self) {
        loop {
            self.lock(SHARED, LockKind::Read, true).await.unwrap();
            let value = self.read().await;
            self.client.env.sleep(Duration::from_millis(self.client.env.random_u64() % 50)).await;
            let mine = self.lock(SHARED, LockKind::Write, false).await;
            if mine.is_ok() {
                self.write(value + 1).await;
            }
            self.unlock(SHARED).await;
            match mine {
                Ok(()) => return,
                Err(error) => assert_eq!(error.errno(), 11, "{error}"),
            }
            self.client.env.sleep(Duration::from_millis(self.client.env.random_u64() % 3000)).await;
        }
    }
}

/// A machine with a disk cache of its own.
fn machine(cell: &Cell, number: u8, dir: &tempfile::TempDir) -> Client {
    let dir = dir.path().join(number.to_string());
    cell.client_with(number, Arc::new(DiskCache::open(&dir, 64 << 20, "this boot").unwrap()))
}

/// Two machines with two processes each add to one counter, and have the file open all the time.
fn all_additions_count(seed: u64, passthrough: bool, upgrade: bool) {
    const EACH: u64 = 8;
    let (cell, dir) = (Cell::new(seed), tempfile::tempdir().unwrap());
    let machines = [machine(&cell, 1, &dir), machine(&cell, 2, &dir)];
    let first = machines[0].clone();
    cell.on(&machines[0], async move { first.put("file", &vec![0; 20_000]).await.unwrap() });
    let done = Arc::new(Mutex::new(0));
    for (n, client) in machines.iter().cycle().take(4).cloned().enumerate() {
        let done = done.clone();
        let env = client.env.clone();
        env.spawn(Box::pin(async move {
            let process = Process::open(&client, n as u64 + 1, passthrough).await;
            assert_eq!(process.backing.is_some(), passthrough);
            for _ in 0..EACH {
                match upgrade {
                    false => process.add_under_a_write_lock().await,
                    true => process.add_under_a_lock_to_read_and_then_to_write().await,
                }
            }
            *done.lock().unwrap() += 1;
        }));
    }
    cell.sim.run_until(Duration::from_secs(3600), || *done.lock().unwrap() == 4).unwrap();
    let third = cell.client(3);
    let counted = cell.on(&third.clone(), async move {
        let data = third.get("file").await.unwrap();
        u64::from_be_bytes(data[COUNTER as usize..COUNTER as usize + 8].try_into().unwrap())
    });
    assert_eq!(counted, 4 * EACH, "seed {seed}");
}

#[test]
fn changes_under_a_byte_range_lock_are_not_lost_to_another_machine() {
    (0..4).for_each(|seed| all_additions_count(seed, false, false));
}

#[test]
fn passthrough_changes_under_a_lock_are_not_lost_either() {
    (0..4).for_each(|seed| all_additions_count(seed, true, false));
}

#[test]
fn a_lock_to_read_becomes_one_to_write_only_if_nobody_wrote_in_between() {
    (0..4).for_each(|seed| all_additions_count(seed, seed % 2 == 1, true));
}

/// SQLite asks this before it uses its shared memory: an outdated reply, or one beyond the range of a kernel, would
/// exclude it from its own data.
#[test]
fn a_query_for_the_holder_of_a_lock_returns_the_present_state() {
    let (cell, dir) = (Cell::new(31), tempfile::tempdir().unwrap());
    let machines = [machine(&cell, 1, &dir), machine(&cell, 2, &dir)];
    let (ours, theirs) = (machines[0].clone(), machines[1].clone());
    cell.on(&machines[0], async move {
        ours.put("file", b"data").await.unwrap();
        let [here, there] = [Process::open(&ours, 1, false).await, Process::open(&theirs, 2, false).await];
        for _ in 0..2 {
            for holder in [&here, &there] {
                holder.lock(TURN, LockKind::Write, false).await.unwrap();
                assert_eq!(holder.conflicting_holder().await, None);
                let other = if holder.owner == 1 { &there } else { &here };
                let told = other.conflicting_holder().await.unwrap();
                assert_eq!((told.kind, told.pid), (LockKind::Write, 0));
                assert!(i64::try_from(told.range.last).is_ok(), "{told:?}");
                holder.unlock(TURN).await;
                assert_eq!(holder.conflicting_holder().await, None);
                assert_eq!(other.conflicting_holder().await, None);
            }
        }
    });
}

#[test]
fn a_lock_ends_with_its_file_and_that_is_no_error() {
    let cell = Cell::new(44);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    let process = cell.on(&a, async move {
        one.put("file", b"locked").await.unwrap();
        let process = Process::open(&one, 7, false).await;
        process.lock(LockRange::WHOLE, LockKind::Write, false).await.unwrap();
        process
    });
    let two = b.clone();
    cell.on(&b, async move { two.venus.unlink(NodeId::ROOT, b"file").await.unwrap() });
    // The server replies to its release that there is no such file.
    cell.on(&a, async move {
        process.unlock(LockRange::WHOLE).await;
        process.client.venus.flush(process.handle, process.owner).await.unwrap();
        process.client.venus.release(process.handle).await.unwrap();
    });
}
