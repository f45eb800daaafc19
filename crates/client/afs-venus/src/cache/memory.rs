//! Memory cache: for the simulator, and for machines without a disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use afs_wire::ids::{CellName, Fid};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::cache::kept::{KeptFiles, Modified};
use crate::cache::{
    CacheFile, CacheKey, CacheStore, Kept, OfflineRecord, PinRecord, Ranges, UnsavedRecord, UnsavedTicket,
};

/// Block size of a memory file; blocks never written take no memory.
const BLOCK: u64 = 4096;

/// Cache in memory. It outlives a `Venus` but not the process: given to a new `Venus` it is like a cache after a
/// restart.
pub struct MemoryCache {
    bytes_max: u64,
    next_id: AtomicU64,
    /// Bytes in the blocks of all files.
    used: Arc<AtomicU64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kept: KeptFiles,
    files: BTreeMap<u64, Arc<dyn CacheFile>>,
    /// Unsaved data, with the serials of the records.
    unsaved: BTreeMap<u64, (u64, Arc<dyn CacheFile>, UnsavedRecord)>,
    serial: u64,
    pins: Vec<PinRecord>,
}

impl MemoryCache {
    /// An empty cache of at most `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> Self {
        MemoryCache {
            bytes_max,
            next_id: AtomicU64::new(1),
            used: Arc::new(AtomicU64::new(0)),
            state: Mutex::new(State::default()),
        }
    }
}

impl CacheStore for MemoryCache {
    fn create(&self) -> io::Result<Arc<dyn CacheFile>> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(MemoryFile {
            id,
            used: Arc::downgrade(&self.used),
            touched: AtomicBool::new(true),
            content: Mutex::new(Blocks::default()),
        }))
    }

    fn find(&self, key: &CacheKey) -> Option<(Arc<dyn CacheFile>, Kept)> {
        let mut state = self.state.lock();
        let record = state.kept.touch(key)?.clone();
        state.files.get(&record.file).map(|file| (file.clone(), record.kept))
    }

    fn hole_bytes(&self, key: &CacheKey) -> u64 {
        self.state.lock().kept.get(key).map_or(0, |record| record.kept.holes.bytes())
    }

    fn kept_bytes(&self, key: &CacheKey) -> Option<u64> {
        Some(self.state.lock().kept.get(key).map_or(0, |record| record.kept.present.bytes()))
    }

    fn may_have(&self, cell: &CellName, fid: Fid) -> bool {
        self.state.lock().kept.has(cell, fid)
    }

    fn kept_near(&self, cell: &CellName, fid: Fid, examined: usize) -> Vec<Fid> {
        self.state.lock().kept.near(cell, fid, examined)
    }

    fn keep(&self, key: &CacheKey, file: &Arc<dyn CacheFile>, kept: &Kept) -> io::Result<()> {
        let mut state = self.state.lock();
        if let Some(old) = state.kept.keep(key, (file.id(), Modified::default()), kept.clone())
            && old.file != file.id()
        {
            state.files.remove(&old.file);
        }
        state.files.insert(file.id(), file.clone());
        Ok(())
    }

    fn forget(&self, cell: &CellName, fid: Fid) {
        let mut state = self.state.lock();
        if let Some(record) = state.kept.forget(cell, fid) {
            state.files.remove(&record.file);
        }
    }

    fn set_pinned(&self, cell: &CellName, fid: Fid, is_pinned: bool) {
        self.state.lock().kept.set_pinned(cell, fid, is_pinned);
    }

    fn keep_pins(&self, pins: &[PinRecord]) -> io::Result<()> {
        self.state.lock().pins = pins.to_vec();
        Ok(())
    }

    fn pins(&self) -> io::Result<Vec<PinRecord>> {
        Ok(self.state.lock().pins.clone())
    }

    fn keep_offline(&self, cell: &CellName, fid: Fid, record: OfflineRecord) -> io::Result<()> {
        self.state.lock().kept.keep_offline((cell.clone(), fid), record);
        Ok(())
    }

    fn forget_offline(&self, cell: &CellName, fid: Fid) {
        self.state.lock().kept.forget_offline(cell, fid);
    }

    fn offline(&self, cell: &CellName, fid: Fid) -> Option<OfflineRecord> {
        self.state.lock().kept.offline(cell, fid).cloned()
    }

    fn offline_names(&self) -> Vec<(CellName, Fid)> {
        self.state.lock().kept.all_offline().map(|(name, _)| name.clone()).collect()
    }

    fn keep_unsaved(
        &self,
        file: &Arc<dyn CacheFile>,
        record: &UnsavedRecord,
    ) -> io::Result<Option<UnsavedTicket>> {
        let mut state = self.state.lock();
        state.serial += 1;
        let ticket = UnsavedTicket { number: file.id(), serial: state.serial };
        state.unsaved.insert(ticket.number, (ticket.serial, file.clone(), record.clone()));
        Ok(Some(ticket))
    }

    fn drop_unsaved(&self, ticket: UnsavedTicket) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.unsaved.get(&ticket.number).is_some_and(|(serial, ..)| *serial == ticket.serial) {
            state.unsaved.remove(&ticket.number);
        }
        Ok(())
    }

    fn unsaved(&self) -> Vec<UnsavedTicket> {
        let state = self.state.lock();
        let ticket =
            |(&number, (serial, ..)): (&u64, &(u64, _, _))| UnsavedTicket { number, serial: *serial };
        state.unsaved.iter().map(ticket).collect()
    }

    fn open_unsaved(&self, ticket: UnsavedTicket) -> io::Result<(Arc<dyn CacheFile>, UnsavedRecord)> {
        let state = self.state.lock();
        let found = state.unsaved.get(&ticket.number).ok_or(io::ErrorKind::NotFound)?;
        Ok((found.1.clone(), found.2.clone()))
    }

    fn bytes_used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    fn make_room(&self, wanted: u64) -> bool {
        let mut state = self.state.lock();
        let fits = |used: u64| used.saturating_add(wanted) <= self.bytes_max;
        if fits(self.bytes_used()) {
            return true;
        }
        let names: Vec<_> =
            state.kept.oldest_first().map(|(name, record)| (name.clone(), record.file)).collect();
        for ((cell, fid), file) in names {
            let unused = state.files.get(&file).is_none_or(|file| Arc::strong_count(file) == 1);
            if unused {
                state.kept.forget(&cell, fid);
                state.files.remove(&file);
            }
            if fits(self.bytes_used()) {
                return true;
            }
        }
        false
    }

    fn blocks(&self) -> bool {
        false
    }

    fn shut_down(&self) -> io::Result<()> {
        Ok(())
    }
}

struct MemoryFile {
    id: u64,
    used: Weak<AtomicU64>,
    touched: AtomicBool,
    content: Mutex<Blocks>,
}

#[derive(Default)]
struct Blocks {
    len: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl MemoryFile {
    fn charge(&self, before: usize, after: usize) {
        let Some(used) = self.used.upgrade() else { return };
        let blocks = |count: usize| count as u64 * BLOCK;
        if after >= before {
            used.fetch_add(blocks(after - before), Ordering::Relaxed);
        } else {
            used.fetch_sub(blocks(before - after), Ordering::Relaxed);
        }
    }

    fn change(&self, work: impl FnOnce(&mut Blocks)) {
        self.touched.store(true, Ordering::SeqCst);
        let mut content = self.content.lock();
        let before = content.blocks.len();
        work(&mut content);
        let after = content.blocks.len();
        drop(content);
        self.charge(before, after);
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        let count = self.content.lock().blocks.len();
        self.charge(count, 0);
    }
}

impl Blocks {
    fn write(&mut self, pos: u64, data: &[u8]) {
        self.len = self.len.max(pos + data.len() as u64);
        let mut at = pos;
        let mut rest = data;
        while !rest.is_empty() {
            let offset = (at % BLOCK) as usize;
            let (now, later) = rest.split_at(rest.len().min(BLOCK as usize - offset));
            let block = self.blocks.entry(at / BLOCK).or_insert_with(|| vec![0; BLOCK as usize].into());
            if let Some(to) = block.get_mut(offset..offset + now.len()) {
                to.copy_from_slice(now);
            }
            at += now.len() as u64;
            rest = later;
        }
    }

    fn read(&self, pos: u64, len: usize) -> Vec<u8> {
        let end = self.len.min(pos.saturating_add(len as u64));
        let mut out = vec![0; end.saturating_sub(pos) as usize];
        let mut at = pos;
        while at < end {
            let offset = (at % BLOCK) as usize;
            let n = (BLOCK as usize - offset).min((end - at) as usize);
            let to = (at - pos) as usize;
            if let Some(from) = self.blocks.get(&(at / BLOCK)).and_then(|block| block.get(offset..offset + n))
                && let Some(to) = out.get_mut(to..to + n)
            {
                to.copy_from_slice(from);
            }
            at += n as u64;
        }
        out
    }

    /// Zeroes a range and frees the blocks that lie entirely within it.
    fn discard(&mut self, pos: u64, len: u64) {
        let end = pos.saturating_add(len);
        let (first, last) = (pos.div_ceil(BLOCK), end / BLOCK);
        let whole: Vec<u64> = self.blocks.range(first..last.max(first)).map(|(&n, _)| n).collect();
        whole.iter().for_each(|n| drop(self.blocks.remove(n)));
        for (number, block) in self.blocks.range_mut(pos / BLOCK..=last) {
            let base = number * BLOCK;
            let from = pos.saturating_sub(base).min(BLOCK) as usize;
            let to = end.saturating_sub(base).min(BLOCK) as usize;
            if let Some(bytes) = block.get_mut(from..to.max(from)) {
                bytes.fill(0);
            }
        }
    }
}

impl CacheFile for MemoryFile {
    fn id(&self) -> u64 {
        self.id
    }

    fn read_at(&self, pos: u64, len: usize) -> io::Result<Bytes> {
        Ok(self.content.lock().read(pos, len).into())
    }

    fn write_at(&self, pos: u64, data: &[u8]) -> io::Result<()> {
        self.change(|content| content.write(pos, data));
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|content| {
            if len < content.len {
                content.discard(len, content.len - len);
            }
            content.len = len;
        });
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.lock().len)
    }

    fn mark(&self) -> io::Result<()> {
        self.touched.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn touched(&self) -> io::Result<bool> {
        Ok(self.touched.load(Ordering::SeqCst))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn data(&self) -> io::Result<Ranges> {
        let content = self.content.lock();
        let mut data = Ranges::new();
        for number in content.blocks.keys() {
            data.insert(number * BLOCK..(number + 1).saturating_mul(BLOCK).min(content.len));
        }
        Ok(data)
    }

    fn discard(&self, pos: u64, len: u64) -> io::Result<()> {
        self.change(|content| content.discard(pos, len));
        Ok(())
    }

    fn file(&self) -> Option<Arc<File>> {
        None
    }
}
