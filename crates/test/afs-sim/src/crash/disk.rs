//! Crash disk in memory: writes are pending until they are synced, and a crash keeps any part of the pending ones,
//! torn at sectors and in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use afs_kv::{Blob, Medium};
use parking_lot::{Mutex, MutexGuard};

use super::Rng;
use super::file::File;
use crate::disk::blob::{Pending, apply};

/// A disk that its clones share.
#[derive(Clone, Default)]
pub struct CrashDisk(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    files: BTreeMap<String, File>,
    /// Files whose directory entry is not durable.
    fresh: BTreeSet<String>,
    /// Removed files that a crash may bring back.
    removed: BTreeMap<String, File>,
    /// Changes left until the power fails.
    fuse: Option<u64>,
    changes: u64,
    capacity: Option<u64>,
    failing_syncs: bool,
    /// Probability that a sync fails, in percent.
    forgetful: Option<(u64, Rng)>,
}

impl CrashDisk {
    /// An empty disk without a size limit.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(State::default())))
    }

    /// The power fails after this many changes; every call fails from then on.
    pub fn crash_after(&self, changes: u64) {
        self.lock().fuse = Some(changes);
    }

    /// Whether the power is off.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.lock().fuse == Some(0)
    }

    /// Number of writes, length changes and syncs.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.lock().changes
    }

    /// Bytes that the files take: those of the blocks that were written or allocated.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.lock().files.values().map(File::used).sum()
    }

    /// Writes for which the files would take more than this many bytes fail with `StorageFull`. `None`: no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock().capacity = bytes;
    }

    /// Bytes that fit on the disk, if that is bounded.
    #[must_use]
    pub fn capacity(&self) -> Option<u64> {
        self.lock().capacity
    }

    /// Whether every sync fails from now on.
    pub fn set_failing_syncs(&self, failing: bool) {
        self.lock().failing_syncs = failing;
    }

    /// Lets some syncs fail as Linux's do: the data counts as clean from then on and never reaches the disk; reads
    /// return it only as long as it is in the page cache.
    pub fn set_forgetful(&self, percent: u64, rng: Rng) {
        self.lock().forgetful = Some((percent, rng));
    }

    /// A disk as a crash at this instant may leave it.
    #[must_use]
    pub fn image(&self, rng: &mut Rng) -> Self {
        let state = self.lock();
        let mut files: BTreeMap<_, _> =
            state.files.iter().map(|(name, file)| (name.clone(), file.image(rng))).collect();
        files.retain(|name, _| !state.fresh.contains(name) || rng.chance(50));
        for (name, file) in &state.removed {
            if rng.chance(50) {
                files.entry(name.clone()).or_insert_with(|| file.image(rng));
            }
        }
        Self(Arc::new(Mutex::new(State { files, ..State::default() })))
    }

    /// The names of all files, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.lock().files.keys().cloned().collect()
    }

    /// The length of a file.
    ///
    /// # Errors
    /// The power is off, there is no such file, or the disk is full or fails.
    pub fn len(&self, name: &str) -> io::Result<u64> {
        Ok(self.lock().alive()?.files.get(name).ok_or(io::ErrorKind::NotFound)?.current.len() as u64)
    }

    /// Reads bytes of a file.
    ///
    /// # Errors
    /// The power is off, there is no such file, or the disk is full or fails.
    pub fn read_at(&self, name: &str, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.lock();
        let file = state.alive()?.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        let part = file.current.get(offset as usize..offset as usize + out.len());
        out.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    /// Writes bytes of a file, which is created if it does not exist.
    ///
    /// # Errors
    /// The power is off, there is no such file, or the disk is full or fails.
    pub fn write_at(&self, name: &str, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        state.grow(name, offset, offset + data.len() as u64)?;
        let change = Pending::Write { offset: offset as usize, data: data.to_vec() };
        state.change(name, change)
    }

    /// Cuts or extends a file.
    ///
    /// # Errors
    /// The power is off, there is no such file, or the disk is full or fails.
    pub fn set_len(&self, name: &str, len: u64) -> io::Result<()> {
        let mut state = self.lock();
        state.alive()?;
        if let Some(file) = state.files.get_mut(name) {
            file.cut(len);
        }
        state.change(name, Pending::SetLen(len as usize))
    }

    /// Takes the room of the first bytes of a file.
    ///
    /// # Errors
    /// The power is off, there is no such file, or the disk is full or fails.
    pub fn allocate(&self, name: &str, len: u64) -> io::Result<()> {
        self.lock().alive()?.grow(name, 0, len)
    }

    /// Makes what was written to a file durable.
    ///
    /// # Errors
    /// The power is off, there is no such file, or the disk is full or fails.
    pub fn sync(&self, name: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.spend()?;
        if state.failing_syncs {
            return Err(io::Error::other("the disk failed"));
        }
        let forgets = state.forgets();
        let file = state.files.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        let pending = std::mem::take(&mut file.pending);
        match forgets {
            None => pending.iter().for_each(|change| apply(&mut file.durable, change)),
            Some(evicted) => {
                if evicted {
                    file.current.clone_from(&file.durable);
                }
                return Err(io::Error::other("the disk failed"));
            }
        }
        Ok(())
    }

    /// Creates a file durably if it does not exist.
    ///
    /// # Errors
    /// The power is off, there is no such file, or the disk is full or fails.
    pub fn create(&self, name: &str) -> io::Result<()> {
        self.lock().alive()?.files.entry(name.to_owned()).or_default();
        Ok(())
    }

    /// Removes a file durably.
    ///
    /// # Errors
    /// The power is off, there is no such file, or the disk is full or fails.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.spend()?;
        state.files.remove(name);
        Ok(())
    }

    /// Creates a file if it does not exist; a crash may lose it, with all synced data, until the entries are synced.
    ///
    /// # Errors
    /// The power is off, there is no such file, or the disk is full or fails.
    pub fn create_entry(&self, name: &str) -> io::Result<()> {
        let mut state = self.lock();
        if state.alive()?.files.contains_key(name) {
            return Ok(());
        }
        state.files.insert(name.to_owned(), File::default());
        state.fresh.insert(name.to_owned());
        state.spend()
    }

    /// Removes a file; a crash may bring it back until the entries are synced.
    ///
    /// # Errors
    /// The power is off, there is no such file, or the disk is full or fails.
    pub fn remove_entry(&self, name: &str) -> io::Result<()> {
        let mut state = self.lock();
        let file = state.alive()?.files.remove(name).ok_or(io::ErrorKind::NotFound)?;
        if !state.fresh.remove(name) {
            state.removed.insert(name.to_owned(), file);
        }
        state.spend()
    }

    /// Makes the directory's entries durable.
    ///
    /// # Errors
    /// The power is off, there is no such file, or the disk is full or fails.
    pub fn sync_entries(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.spend()?;
        state.fresh.clear();
        state.removed.clear();
        Ok(())
    }

    /// Flips a bit of the stored data.
    ///
    /// # Panics
    /// If there is no such file or byte.
    pub fn damage(&self, name: &str, offset: usize) {
        let mut state = self.lock();
        let file = state.files.get_mut(name).unwrap_or_else(|| panic!("no file {name}"));
        file.current[offset] ^= 1;
        file.durable[offset] ^= 1;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    fn alive(&mut self) -> io::Result<&mut Self> {
        if self.fuse == Some(0) { Err(io::Error::other("the power is off")) } else { Ok(self) }
    }

    /// Whether this sync fails, and whether its data is dropped from the cache, too.
    fn forgets(&mut self) -> Option<bool> {
        let (percent, rng) = self.forgetful.as_mut()?;
        rng.chance(*percent).then(|| rng.chance(30))
    }

    fn spend(&mut self) -> io::Result<()> {
        self.alive()?;
        self.changes += 1;
        if let Some(fuse) = &mut self.fuse {
            *fuse -= 1;
            if *fuse == 0 {
                return Err(io::Error::other("the power went"));
            }
        }
        Ok(())
    }

    fn grow(&mut self, name: &str, from: u64, to: u64) -> io::Result<()> {
        let used: u64 = if self.capacity.is_some() { self.files.values().map(File::used).sum() } else { 0 };
        let file = self.files.entry(name.to_owned()).or_default();
        let missing = file.missing(from, to);
        if missing > 0 && self.capacity.is_some_and(|capacity| used + missing > capacity) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        file.take(from, to);
        Ok(())
    }

    /// Applies a change; one that the crash interrupts may have reached the disk in part.
    fn change(&mut self, name: &str, change: Pending) -> io::Result<()> {
        self.alive()?;
        let file = self.files.entry(name.to_owned()).or_default();
        apply(&mut file.current, &change);
        file.pending.push(change);
        self.spend()
    }
}

impl Medium for CrashDisk {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Blob>> {
        self.create(name)?;
        Ok(Arc::new(CrashBlob { disk: self.clone(), name: name.to_owned() }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.names())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        CrashDisk::remove(self, name)
    }
}

struct CrashBlob {
    disk: CrashDisk,
    name: String,
}

impl std::fmt::Debug for CrashBlob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Blob for CrashBlob {
    fn len(&self) -> io::Result<u64> {
        self.disk.len(&self.name)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read_at(&self.name, offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.write_at(&self.name, offset, data)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.disk.allocate(&self.name, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.set_len(&self.name, len)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync(&self.name)
    }
}
