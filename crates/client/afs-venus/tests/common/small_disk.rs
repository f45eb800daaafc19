//! Cache on a disk that is full, or that has vanished.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use afs_venus::MemoryCache;
use afs_venus::cache::{CacheFile, CacheKey, CacheStore, Kept, Ranges};
use afs_wire::ids::{CellName, Fid};
use bytes::Bytes;

const EIO: i32 = 5;

/// Bytes that can still be written, and whether the disk is there.
#[derive(Clone)]
pub struct Room(Arc<(AtomicU64, AtomicBool)>);

/// A disk that is there, with room for everything.
impl Default for Room {
    fn default() -> Self {
        Room(Arc::new((AtomicU64::new(u64::MAX), AtomicBool::new(true))))
    }
}

impl Room {
    pub fn set(&self, bytes: u64) {
        self.0.0.store(bytes, Ordering::SeqCst);
    }

    /// Takes the disk away, or puts it back with what was on it.
    pub fn set_there(&self, is_there: bool) {
        self.0.1.store(is_there, Ordering::SeqCst);
    }

    fn check(&self) -> io::Result<()> {
        let is_there = self.0.1.load(Ordering::SeqCst);
        is_there.then_some(()).ok_or_else(|| io::Error::from_raw_os_error(EIO))
    }

    /// A part of what does not fit is not written.
    fn take(&self, bytes: u64) -> io::Result<()> {
        self.check()?;
        let taken = self.0.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| io::ErrorKind::StorageFull.into())
    }
}

/// A cache whose disk has so much room.
pub struct SmallDisk(MemoryCache, Room);

impl SmallDisk {
    pub fn new(room: &Room) -> Self {
        SmallDisk(MemoryCache::new(16 << 20), room.clone())
    }
}

struct SmallFile(Arc<dyn CacheFile>, Room);

impl CacheStore for SmallDisk {
    fn create(&self) -> io::Result<Arc<dyn CacheFile>> {
        self.1.check()?;
        Ok(Arc::new(SmallFile(self.0.create()?, self.1.clone())))
    }

    fn find(&self, key: &CacheKey) -> Option<(Arc<dyn CacheFile>, Kept)> {
        self.1.check().ok()?;
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
        self.1.check()?;
        self.0.shut_down()
    }
}

impl CacheFile for SmallFile {
    fn id(&self) -> u64 {
        self.0.id()
    }

    fn read_at(&self, pos: u64, len: usize) -> io::Result<Bytes> {
        self.1.check()?;
        self.0.read_at(pos, len)
    }

    fn write_at(&self, pos: u64, data: &[u8]) -> io::Result<()> {
        self.1.take(data.len() as u64)?;
        self.0.write_at(pos, data)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.1.check()?;
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.1.check()?;
        self.0.len()
    }

    fn mark(&self) -> io::Result<()> {
        self.1.check()?;
        self.0.mark()
    }

    fn touched(&self) -> io::Result<bool> {
        self.1.check()?;
        self.0.touched()
    }

    fn sync(&self) -> io::Result<()> {
        self.1.check()?;
        self.0.sync()
    }

    fn data(&self) -> io::Result<Ranges> {
        self.1.check()?;
        self.0.data()
    }

    fn discard(&self, pos: u64, len: u64) -> io::Result<()> {
        self.1.check()?;
        self.0.discard(pos, len)
    }

    fn file(&self) -> Option<Arc<File>> {
        self.0.file()
    }
}
