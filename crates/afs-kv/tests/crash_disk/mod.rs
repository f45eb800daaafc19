//! Crash disk in memory: writes are pending until they are synced, and a crash keeps any part of the pending ones,
//! torn at sectors and in any order.

#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use afs_kv::{Blob, Medium};

/// A small pseudorandom generator.
#[derive(Clone)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// How many seeds to try: `ANDREW_SEEDS`, for long runs, or the number given.
pub fn seeds(usual: u64) -> std::ops::Range<u64> {
    0..std::env::var("ANDREW_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[derive(Clone)]
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

#[derive(Clone, Default)]
struct File {
    durable: Vec<u8>,
    current: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write { offset: usize, data: Vec<u8> },
    Length(usize),
}

impl CrashDisk {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(State::default())))
    }

    /// The power fails after this many changes; every call fails from then on.
    pub fn crash_after(&self, changes: u64) {
        self.lock().fuse = Some(changes);
    }

    pub fn is_dead(&self) -> bool {
        self.lock().fuse == Some(0)
    }

    /// Number of writes, length changes and syncs.
    pub fn changes(&self) -> u64 {
        self.lock().changes
    }

    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock().capacity = bytes;
    }

    pub fn set_failing_syncs(&self, failing: bool) {
        self.lock().failing_syncs = failing;
    }

    /// Lets some syncs fail as Linux's do: the data counts as clean from then on and never reaches the disk; reads
    /// return it only as long as it is in the page cache.
    pub fn set_forgetful(&self, percent: u64, rng: Rng) {
        self.lock().forgetful = Some((percent, rng));
    }

    /// A disk as a crash at this instant may leave it.
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

    pub fn names(&self) -> Vec<String> {
        self.lock().files.keys().cloned().collect()
    }

    pub fn len(&self, name: &str) -> io::Result<u64> {
        Ok(self.lock().alive()?.files.get(name).ok_or(io::ErrorKind::NotFound)?.current.len() as u64)
    }

    pub fn read_at(&self, name: &str, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.lock();
        let file = state.alive()?.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        let part = file.current.get(offset as usize..offset as usize + out.len());
        out.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    pub fn write_at(&self, name: &str, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        state.grow(name, offset + data.len() as u64)?;
        let change = Change::Write { offset: offset as usize, data: data.to_vec() };
        state.change(name, change)
    }

    pub fn set_len(&self, name: &str, len: u64) -> io::Result<()> {
        let mut state = self.lock();
        state.grow(name, len)?;
        state.change(name, Change::Length(len as usize))
    }

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
            None => pending.iter().for_each(|change| change.apply(&mut file.durable)),
            Some(evicted) => {
                if evicted {
                    file.current.clone_from(&file.durable);
                }
                return Err(io::Error::other("the disk failed"));
            }
        }
        Ok(())
    }

    pub fn create(&self, name: &str) -> io::Result<()> {
        self.lock().alive()?.files.entry(name.to_owned()).or_default();
        Ok(())
    }

    pub fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.spend()?;
        state.files.remove(name);
        Ok(())
    }

    /// Creates a file if it does not exist; a crash may lose it, with all synced data, until the entries are synced.
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
    pub fn remove_entry(&self, name: &str) -> io::Result<()> {
        let mut state = self.lock();
        let file = state.alive()?.files.remove(name).ok_or(io::ErrorKind::NotFound)?;
        if !state.fresh.remove(name) {
            state.removed.insert(name.to_owned(), file);
        }
        state.spend()
    }

    pub fn sync_entries(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.spend()?;
        state.fresh.clear();
        state.removed.clear();
        Ok(())
    }

    /// Flips a bit of the stored data.
    pub fn damage(&self, name: &str, offset: usize) {
        let mut state = self.lock();
        let file = state.files.get_mut(name).unwrap();
        file.current[offset] ^= 1;
        file.durable[offset] ^= 1;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
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

    fn grow(&mut self, name: &str, end: u64) -> io::Result<()> {
        let now = self.files.get(name).map_or(0, |file| file.current.len() as u64);
        let used: u64 = self.files.values().map(|file| file.current.len() as u64).sum();
        match self.capacity {
            Some(capacity) if end > now && used + end - now > capacity => {
                Err(io::ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    }

    /// Applies a change; one that the crash interrupts may have reached the disk in part.
    fn change(&mut self, name: &str, change: Change) -> io::Result<()> {
        self.alive()?;
        let file = self.files.entry(name.to_owned()).or_default();
        change.apply(&mut file.current);
        file.pending.push(change);
        self.spend()
    }
}

impl File {
    fn image(&self, rng: &mut Rng) -> Self {
        let mut bytes = self.durable.clone();
        let mut pending = self.pending.clone();
        if rng.chance(50) {
            for at in (1..pending.len()).rev() {
                pending.swap(at, rng.below(at as u64 + 1) as usize);
            }
        }
        // Sometimes everything was kept, sometimes nothing.
        let kept = [0, 10, 50, 90, 100][rng.below(5) as usize];
        for change in &pending {
            change.apply_in_part(&mut bytes, kept, rng);
        }
        Self { durable: bytes.clone(), current: bytes, pending: Vec::new() }
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Length(len) => bytes.resize(*len, 0),
            Self::Write { offset, data } => {
                if bytes.len() < offset + data.len() {
                    bytes.resize(offset + data.len(), 0);
                }
                bytes[*offset..offset + data.len()].copy_from_slice(data);
            }
        }
    }

    fn apply_in_part(&self, bytes: &mut Vec<u8>, kept: u64, rng: &mut Rng) {
        match self {
            Self::Length(_) => {
                if rng.chance(kept) {
                    self.apply(bytes);
                }
            }
            Self::Write { offset, data } => {
                let mut at = 0;
                while at < data.len() {
                    let sector_end = ((offset + at) / SECTOR + 1) * SECTOR - offset;
                    let end = sector_end.min(data.len());
                    if rng.chance(kept) {
                        Self::Write { offset: offset + at, data: data[at..end].to_vec() }.apply(bytes);
                    }
                    at = end;
                }
            }
        }
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

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.set_len(&self.name, len)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync(&self.name)
    }
}

const SECTOR: usize = 512;
