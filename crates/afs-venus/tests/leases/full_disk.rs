//! Disk of the cache on which there is no room for what programs write: they get the error, and what was acknowledged is there.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afs_sim::SimRng;
use afs_venus::MemoryCache;
use afs_venus::cache::{CacheFile, CacheKey, CacheStore, Kept, Ranges};
use afs_wire::ids::{CellName, Fid};
use bytes::Bytes;

use super::*;

const ENOSPC: i32 = 28;

/// Bytes that can still be written.
#[derive(Clone)]
struct Room(Arc<AtomicU64>);

impl Room {
    fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::SeqCst);
    }

    /// A part of what does not fit is not written.
    fn take(&self, bytes: u64) -> io::Result<()> {
        let taken = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| io::ErrorKind::StorageFull.into())
    }
}

/// A cache whose disk has so much room.
struct Small(MemoryCache, Room);

struct SmallFile(Arc<dyn CacheFile>, Room);

impl CacheStore for Small {
    fn create(&self) -> io::Result<Arc<dyn CacheFile>> {
        Ok(Arc::new(SmallFile(self.0.create()?, self.1.clone())))
    }

    fn find(&self, key: &CacheKey) -> Option<(Arc<dyn CacheFile>, Kept)> {
        let (file, kept) = self.0.find(key)?;
        Some((Arc::new(SmallFile(file, self.1.clone())), kept))
    }

    fn may_have(&self, cell: &CellName, fid: Fid) -> bool {
        self.0.may_have(cell, fid)
    }

    /// The record of what is kept takes room too. What is kept is never found, so that everything is read from the server.
    fn keep(&self, _key: &CacheKey, _file: &Arc<dyn CacheFile>, _kept: &Kept) -> io::Result<()> {
        self.1.take(1)
    }

    fn forget(&self, cell: &CellName, fid: Fid) {
        self.0.forget(cell, fid);
    }

    fn bytes_used(&self) -> u64 {
        self.0.bytes_used()
    }

    fn bytes_max(&self) -> u64 {
        self.0.bytes_max()
    }

    fn make_room(&self, wanted: u64) -> bool {
        self.0.make_room(wanted)
    }

    fn blocks(&self) -> bool {
        self.0.blocks()
    }

    fn shut_down(&self) -> io::Result<()> {
        self.0.shut_down()
    }
}

impl CacheFile for SmallFile {
    fn id(&self) -> u64 {
        self.0.id()
    }

    fn read_at(&self, pos: u64, len: usize) -> io::Result<Bytes> {
        self.0.read_at(pos, len)
    }

    fn write_at(&self, pos: u64, data: &[u8]) -> io::Result<()> {
        self.1.take(data.len() as u64)?;
        self.0.write_at(pos, data)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn mark(&self) -> io::Result<()> {
        self.0.mark()
    }

    fn touched(&self) -> io::Result<bool> {
        self.0.touched()
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn data(&self) -> io::Result<Ranges> {
        self.0.data()
    }

    fn discard(&self, pos: u64, len: u64) -> io::Result<()> {
        self.0.discard(pos, len)
    }

    fn file(&self) -> Option<Arc<File>> {
        self.0.file()
    }
}

/// A machine of a cell with leases, and the room on its disk.
fn machine(cell: &Cell) -> (Client, Room) {
    let room = Room(Arc::new(AtomicU64::new(u64::MAX)));
    (cell.client_with(1, Arc::new(Small(MemoryCache::new(16 << 20), room.clone()))), room)
}

#[test]
fn a_full_disk_is_an_error_of_the_write_and_nothing_acknowledged_is_lost() {
    for seed in 0..10 {
        let cell = cell(300 + seed);
        let (a, room) = machine(&cell);
        let client = a.clone();
        let mut rng = SimRng::new(seed);
        let (acknowledged, refused) = cell.on(&a, async move {
            lease(&client, "dir").await;
            let (mut acknowledged, mut refused) = (BTreeMap::new(), 0);
            for n in 0..60 {
                if rng.below(8) == 0 {
                    room.set(rng.below(20_000));
                }
                let (name, data) = (format!("dir/file{n}"), vec![n; rng.between(1, 9000) as usize]);
                match client.put(&name, &data).await {
                    Ok(()) => drop(acknowledged.insert(format!("file{n}"), data)),
                    Err(error) => {
                        assert_eq!(error.errno(), ENOSPC, "seed {seed}: {error}");
                        refused += 1;
                    }
                }
                client.env.sleep(Duration::from_millis(rng.below(100))).await;
            }
            // No room for anything: what was acknowledged is sent all the same.
            room.set(0);
            let dir = client.find("dir").await.unwrap().node;
            client.venus.fsync_directory(dir).await.unwrap();
            assert_eq!(client.venus.counters().leases_lost, 0);
            (acknowledged, refused)
        });
        assert!(refused > 5 && acknowledged.len() > 5, "seed {seed}: this test would notice nothing");
        cell.sim.crash(a.node);
        let b = cell.client(2);
        let other = b.clone();
        let all = cell.on(&b, async move { contents(&other, "dir").await });
        for (name, data) in &all {
            match acknowledged.get(name) {
                Some(acknowledged) => assert_eq!(data, acknowledged, "seed {seed}: {name}"),
                None => assert!(data.is_empty() || name.starts_with("first"), "seed {seed}: {name}"),
            }
        }
        let is_there = |name: &&String| all.contains_key(*name);
        assert_eq!(acknowledged.keys().filter(is_there).count(), acknowledged.len(), "seed {seed}");
    }
}

#[test]
fn a_lease_that_is_lost_is_made_good_with_a_full_disk() {
    let cell = cell(320);
    let (a, room) = machine(&cell);
    let client = a.clone();
    let full = room.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        for n in 0..30u8 {
            client.put(&format!("dir/file{n}"), &[n; 500]).await.unwrap();
        }
        full.set(0);
    });
    cell.restart_server();
    cell.sim.run_for(Duration::from_secs(90));
    let client = a.clone();
    cell.on(&a, async move { assert_eq!(client.venus.counters().leases_lost, 1) });
    let b = cell.client(2);
    let other = b.clone();
    cell.on(&b, async move {
        let all = contents(&other, "dir").await;
        for n in 0..30u8 {
            assert_eq!(all[&format!("file{n}")], [n; 500], "{n}");
        }
    });
}
