//! Disk cache: a directory with one file for each cached file, and an index.
//!
//! ```text
//! DIR/lock           held by the process that uses the cache
//! DIR/key            whose key the cache is encrypted with, if it is; see `key_file`
//! DIR/trust          a word: the boot during which the cache is in use, or "clean"
//! DIR/run            number of the run that uses the cache, or used it last; see `orphans`
//! DIR/index          records of what is kept, appended; see `index`
//! DIR/pins           what users have pinned; see `crate::cache::pins`
//! DIR/data/xx/N      the data, N the number of the file in hexadecimal, xx the two digits before its last two
//! DIR/unsaved/       data that no server has, with records; see `unsaved`
//! ```
//!
//! Except for unsaved data nothing is flushed while the cache is in use. After a crash of the process the page cache of the machine still has
//! all of it; after a crash of the machine it may not, and the cache is deleted, but for the
//! unsaved data: `trust` tells the two apart.

mod being_written;
mod bytes;
#[cfg(test)]
mod encrypted_tests;
mod file;
mod holes;
mod index;
mod key_file;
mod local;
mod orphans;
mod sealed_bytes;
#[cfg(test)]
mod tests;
mod trust;
mod unsaved;

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use afs_own as own;
use afs_wire::ids::{CellName, Fid};
use parking_lot::Mutex;

use crate::cache::encryption::{CacheCipher, CacheSecret, Sealing};
use crate::cache::kept::{BeingWritten, KeptFiles, Record};
use crate::cache::pins::{self, LIST_MAX};
use crate::cache::unsaved::RECORD_MAX;
use crate::cache::worker::lacks_descriptors;
use crate::cache::{
    CacheFile, CacheKey, CacheStore, Kept, OfflineRecord, PinRecord, UnsavedRecord, UnsavedTicket,
    WrittenFile,
};
use file::DiskFile;
#[cfg(feature = "fuzzing")]
pub(crate) use index::read_any as read_any_index;
use index::{Index, IndexRecord};
pub use key_file::CacheKeyError;
use local::{named, path_of, remove_if_there, replace_durably, take_lock, with_descriptor};
pub use orphans::Sweeper;
use unsaved::{Found, UnsavedDirectory};

/// Most unused files kept open, so that the next open is fast.
const WARM_MAX: usize = 1024;
/// Most kept files, about 200 bytes of memory each, however small they are. Beyond it the least recently used ones go.
const FILES_MAX: usize = 2 << 20;
/// Fewest entries of files that are open among which those of closed ones are looked for.
const OPEN_SWEPT_MIN: usize = 64;

/// Cache in a directory.
pub struct DiskCache {
    dir: PathBuf,
    /// Held as long as the cache is open.
    _lock: fs::File,
    bytes_max: u64,
    /// The first number of this run.
    first_id: u64,
    next_id: AtomicU64,
    /// Bytes written to files that are not kept.
    unkept: Arc<AtomicU64>,
    /// Of an encrypted cache.
    cipher: Option<CacheCipher>,
    sealing: Sealing,
    state: Mutex<State>,
    unsaved: Mutex<UnsavedState>,
}

/// Unsaved data. Its lock orders the changes of the directory, and is held for them.
struct UnsavedState {
    directory: UnsavedDirectory,
    /// The newest record of each number.
    serials: BTreeMap<u64, u64>,
    next_serial: u64,
}

struct State {
    kept: KeptFiles,
    /// Files that are open, and up to as many that are not any more.
    open: BTreeMap<u64, Weak<DiskFile>>,
    /// Number of entries of `open` at which those of closed files are removed.
    open_swept_at: usize,
    /// Second-chance queue: a file that was used since it was last examined is passed over.
    warm: VecDeque<Arc<DiskFile>>,
    warm_max: usize,
    files_max: usize,
    index: Index,
}

impl DiskCache {
    /// Opens the cache in `dir` as [`DiskCache::open_unswept`] does, and removes first what nothing names.
    ///
    /// # Errors
    /// The same, and a file that cannot be removed.
    pub fn open(dir: &Path, bytes_max: u64, boot: &str) -> io::Result<DiskCache> {
        let (cache, sweeper) = Self::open_unswept(dir, bytes_max, boot, None)?;
        sweeper.sweep()?;
        Ok(cache)
    }

    /// Opens the cache in `dir`, creating it if needed, with space for `bytes_max` bytes. Its time grows with the kept files
    /// alone; what earlier runs left behind is for the sweeper, beside the use of the cache.
    ///
    /// `boot` identifies the present run of the machine (on Linux the text of `/proc/sys/kernel/random/boot_id`): what
    /// was kept under another one, without an orderly stop since, is deleted. One process at a time may use a
    /// directory; a second one gets an error.
    ///
    /// With `secret` the cache is encrypted with the key of a user: a new one becomes so, and one that has something has to be so already.
    ///
    /// # Errors
    /// The directory is in use, or cannot be read or written; a [`CacheKeyError`] in the error: the cache is not encrypted with this key.
    pub fn open_unswept(
        dir: &Path,
        bytes_max: u64,
        boot: &str,
        secret: Option<&CacheSecret>,
    ) -> io::Result<(DiskCache, Sweeper)> {
        let (data, index) = (dir.join("data"), dir.join("index"));
        own::given_directory(dir)?;
        own::directory(dir)?;
        own::directory(&data)?;
        let held = take_lock(&dir.join("lock"))?;
        let cipher = key_file::cipher_of(dir, secret)?;
        let sealing = cipher.as_ref().map_or(Sealing::Plain, CacheCipher::records);
        let is_trusted = trust::is_due(dir, boot);
        let (mut log, mut kept) = Index::open(&index, &sealing).map_err(named(&index))?;
        let directory = UnsavedDirectory::open(dir, path_of).map_err(named(&dir.join("unsaved")))?;
        let mut found = unsaved::sweep(&directory).map_err(named(&dir.join("unsaved")))?;
        let path = |number| path_of(dir, number);
        being_written::set_aside(&mut kept, &directory, path, &mut found, &sealing)?;
        if !is_trusted {
            trust::empty(dir)?;
            (log, kept) = Index::open(&index, &sealing).map_err(named(&index))?;
        }
        trust::begin(dir, boot)?;
        let Found { kept: unsaved, lone } = found;
        unsaved::tell_lone(&directory, &lone);
        let numbers = kept.file_numbers().chain(unsaved.iter().chain(&lone).copied());
        let first = orphans::begin_run(dir, numbers).map_err(named(&dir.join("run")))?;
        let sweeper = Sweeper::new(dir, &kept, first);
        let state = State {
            kept,
            open: BTreeMap::new(),
            open_swept_at: OPEN_SWEPT_MIN,
            warm: VecDeque::new(),
            warm_max: WARM_MAX,
            files_max: FILES_MAX,
            index: log,
        };
        let cache = DiskCache {
            dir: dir.to_owned(),
            _lock: held,
            bytes_max,
            first_id: first,
            next_id: AtomicU64::new(first),
            unkept: Arc::new(AtomicU64::new(0)),
            cipher,
            sealing,
            state: Mutex::new(state),
            unsaved: Mutex::new(UnsavedState {
                directory,
                serials: unsaved.into_iter().map(|number| (number, 0)).collect(),
                next_serial: 1,
            }),
        };
        Ok((cache, sweeper))
    }

    /// Keeps so many unused files open at most. Default and limit: 1024.
    pub fn keep_open_at_most(&self, files: usize) {
        self.state.lock().warm_max = files.min(WARM_MAX);
    }

    fn path(&self, id: u64) -> PathBuf {
        path_of(&self.dir, id)
    }

    fn has_room(&self, state: &State, wanted: u64) -> bool {
        let used = state.kept.bytes() + self.unkept.load(Ordering::Relaxed);
        used.saturating_add(wanted) <= self.bytes_max && state.kept.files() <= state.files_max
    }

    /// The file of a record, opened if needed. One of an earlier run is refused if anybody has changed it: what is cached is not served without a
    /// look.
    fn file(&self, state: &mut State, record: &Record) -> io::Result<Arc<DiskFile>> {
        let id = record.file;
        let open = state.open.get(&id).and_then(Weak::upgrade);
        let is_new = open.is_none();
        let file = match open {
            Some(file) => file,
            None => Arc::new(with_descriptor(
                || DiskFile::open(id, self.path(id), &self.unkept, self.cipher.as_ref()),
                || state.close_unused(),
            )?),
        };
        if is_new && id < self.first_id && !file.is_as_kept(record.modified)? {
            let text = format!("{} was changed by another program", self.path(id).display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        state.note_open(&file);
        state.keep_warm(&file);
        Ok(file)
    }
}

impl State {
    /// Removes a file from the cache; its space is freed when its last user closes it.
    fn remove(&mut self, cell: &CellName, fid: Fid, path: impl Fn(u64) -> PathBuf) {
        let Some(record) = self.kept.forget(cell, fid) else { return };
        self.cool(record.file);
        self.open.remove(&record.file);
        if let Err(error) = remove_if_there(&path(record.file)) {
            tracing::warn!(%error, "a cache file cannot be removed");
        }
        if let Err(error) = self.index.append(&IndexRecord::Forget { cell: cell.clone(), fid }) {
            tracing::warn!(%error, "the index of the cache cannot be written");
        }
    }

    /// Notes a file that is open, and now and then removes those that are not any more.
    fn note_open(&mut self, file: &Arc<DiskFile>) {
        self.open.insert(file.number(), Arc::downgrade(file));
        if self.open.len() >= self.open_swept_at {
            self.open.retain(|_, file| file.strong_count() > 0);
            self.open_swept_at = OPEN_SWEPT_MIN.max(2 * self.open.len());
        }
    }

    /// Keeps a file open after its users, in place of one not used for long.
    fn keep_warm(&mut self, file: &Arc<DiskFile>) {
        if file.use_warm() {
            return;
        }
        self.warm.push_back(file.clone());
        while self.warm.len() > self.warm_max {
            let Some(oldest) = self.warm.pop_front() else { return };
            if oldest.was_used() {
                self.warm.push_back(oldest);
            } else {
                oldest.leave_warm();
            }
        }
    }

    /// Closes all files that nobody uses: there are no descriptors left.
    fn close_unused(&mut self) {
        self.warm.drain(..).for_each(|file| file.leave_warm());
    }

    /// Appends a record to the index, and rewrites that when it has become long.
    fn record(&mut self, record: &IndexRecord) -> io::Result<()> {
        self.index.append(record)?;
        match self.index.is_long(self.kept.count()) {
            true => self.rewrite_index(),
            false => Ok(()),
        }
    }

    fn rewrite_index(&mut self) -> io::Result<()> {
        let State { index, kept, open, .. } = self;
        kept.retain_being_written(|file| open.get(&file).is_some_and(|file| file.strong_count() > 0));
        index.rewrite(kept)
    }

    /// Closes a file that was kept open.
    fn cool(&mut self, id: u64) {
        let warm = self.open.get(&id).and_then(Weak::upgrade).filter(|file| file.is_warm());
        if let Some(file) = warm {
            self.warm.retain(|other| other.number() != id);
            file.leave_warm();
        }
    }

    /// True if only the store refers to the file.
    fn is_unused(&self, id: u64) -> bool {
        let open = self.open.get(&id).and_then(Weak::upgrade);
        open.is_none_or(|file| Arc::strong_count(&file) <= 1 + usize::from(file.is_warm()))
    }
}

impl CacheStore for DiskCache {
    fn create(&self) -> io::Result<Arc<dyn CacheFile>> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let path = self.path(id);
        let create = || match DiskFile::create(id, path.clone(), &self.unkept, self.cipher.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                path.parent().map_or(Ok(()), own::subdirectory)?;
                DiskFile::create(id, path.clone(), &self.unkept, self.cipher.as_ref())
            }
            other => other,
        };
        let file = with_descriptor(create, || self.state.lock().close_unused())?;
        let file = Arc::new(file);
        self.state.lock().note_open(&file);
        Ok(file)
    }

    fn find(&self, key: &CacheKey) -> Option<(Arc<dyn CacheFile>, Kept)> {
        let mut state = self.state.lock();
        let record = state.kept.touch(key)?.clone();
        match self.file(&mut state, &record) {
            Ok(file) => Some((file, record.kept)),
            Err(error) if lacks_descriptors(&error) => None,
            Err(error) => {
                let path = self.path(record.file);
                tracing::warn!(%error, fid = %key.fid, "{} cannot be used; it is fetched anew", path.display());
                state.remove(&key.cell, key.fid, |id| self.path(id));
                None
            }
        }
    }

    fn find_open(&self, key: &CacheKey) -> Option<(Arc<dyn CacheFile>, Kept)> {
        let mut state = self.state.try_lock()?;
        let number = state.kept.get(key)?.file;
        let file = state.open.get(&number).and_then(Weak::upgrade)?;
        state.keep_warm(&file);
        let record = state.kept.touch(key)?;
        Some((file, record.kept.clone()))
    }

    fn is_kept(&self, key: &CacheKey, file: &Arc<dyn CacheFile>, kept: &Kept) -> bool {
        let Some(state) = self.state.try_lock() else { return false };
        state.kept.get(key).is_some_and(|record| record.file == file.id() && record.kept == *kept)
    }

    fn hole_bytes(&self, key: &CacheKey) -> u64 {
        let Some(state) = self.state.try_lock() else { return 0 };
        state.kept.get(key).map_or(0, |record| record.kept.holes.bytes())
    }

    fn kept_bytes(&self, key: &CacheKey) -> Option<u64> {
        let state = self.state.try_lock()?;
        Some(state.kept.get(key).map_or(0, |record| record.kept.present.bytes()))
    }

    fn may_have(&self, cell: &CellName, fid: Fid) -> bool {
        self.state.try_lock().is_none_or(|state| state.kept.has(cell, fid))
    }

    fn kept_near(&self, cell: &CellName, fid: Fid, examined: usize) -> Vec<Fid> {
        self.state.try_lock().map_or_else(Vec::new, |state| state.kept.near(cell, fid, examined))
    }

    fn keep(&self, key: &CacheKey, file: &Arc<dyn CacheFile>, kept: &Kept) -> io::Result<()> {
        let mut state = self.state.lock();
        let id = file.id();
        let open = state.open.get(&id).and_then(Weak::upgrade);
        let modified = open.as_ref().and_then(|file| file.modified().ok()).unwrap_or_default();
        let old = state.kept.keep(key, (id, modified), kept.clone());
        if let Some(old) = old.filter(|old| old.file != id) {
            state.cool(old.file);
            state.open.remove(&old.file);
            remove_if_there(&self.path(old.file))?;
        }
        if let Some(file) = open {
            file.set_kept(true);
            // A new file is often read next.
            state.keep_warm(&file);
        }
        state.record(&IndexRecord::Keep { key: key.clone(), file: id, modified, kept: kept.clone() })
    }

    fn forget(&self, cell: &CellName, fid: Fid) {
        let mut state = self.state.lock();
        let Some(record) = state.kept.forget(cell, fid) else { return };
        state.cool(record.file);
        match state.open.get(&record.file).and_then(Weak::upgrade) {
            // Programs that have it open continue to use it; it is deleted with its last user.
            Some(file) => file.set_kept(false),
            None => drop(remove_if_there(&self.path(record.file))),
        }
        if let Err(error) = state.index.append(&IndexRecord::Forget { cell: cell.clone(), fid }) {
            tracing::warn!(%error, "the index of the cache cannot be written");
        }
    }

    fn begin_writing(&self, file: &Arc<dyn CacheFile>, of: WrittenFile) -> io::Result<()> {
        if self.cipher.is_some() {
            // The kernel writes no encrypted file.
            return Ok(());
        }
        let mut state = self.state.lock();
        let (file, written) = (file.id(), BeingWritten { of, is_changed: false });
        match state.kept.begin_writing(file, &written) {
            true => state.record(&IndexRecord::Written { file, written }),
            false => Ok(()),
        }
    }

    fn set_changed(&self, file: &Arc<dyn CacheFile>, is_changed: bool) -> io::Result<()> {
        let mut state = self.state.lock();
        let file = file.id();
        let Some(written) = state.kept.set_changed(file, is_changed).cloned() else { return Ok(()) };
        state.record(&IndexRecord::Written { file, written }).inspect_err(|_| {
            state.kept.set_changed(file, !is_changed);
        })
    }

    fn set_pinned(&self, cell: &CellName, fid: Fid, is_pinned: bool) {
        self.state.lock().kept.set_pinned(cell, fid, is_pinned);
    }

    fn keep_pins(&self, pins: &[PinRecord]) -> io::Result<()> {
        replace_durably(&self.dir, "pins", &pins::encode(&self.sealing, pins))
    }

    fn pins(&self) -> io::Result<Vec<PinRecord>> {
        use io::Read;
        let path = self.dir.join("pins");
        let file = match fs::File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(named(&path))?,
        };
        let mut bytes = Vec::new();
        file.take(LIST_MAX + 1).read_to_end(&mut bytes).map_err(named(&path))?;
        pins::decode(&self.sealing, &bytes).ok_or_else(|| {
            let text = format!("{} is damaged, or of another version of this program", path.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    fn keep_offline(&self, cell: &CellName, fid: Fid, record: OfflineRecord) -> io::Result<()> {
        let mut state = self.state.lock();
        match state.kept.keep_offline((cell.clone(), fid), record.clone()) {
            true => state.record(&IndexRecord::Offline { cell: cell.clone(), fid, record }),
            false => Ok(()),
        }
    }

    fn forget_offline(&self, cell: &CellName, fid: Fid) {
        let mut state = self.state.lock();
        if state.kept.forget_offline(cell, fid)
            && let Err(error) = state.record(&IndexRecord::NotOffline { cell: cell.clone(), fid })
        {
            tracing::warn!(%error, "the index of the cache cannot be written");
        }
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
        let mut state = self.unsaved.lock();
        let number = file.id();
        unsaved::keep(&state.directory, number, &record.encode(&self.sealing))?;
        let serial = state.next_serial;
        state.next_serial += 1;
        state.serials.insert(number, serial);
        Ok(Some(UnsavedTicket { number, serial }))
    }

    fn drop_unsaved(&self, ticket: UnsavedTicket) -> io::Result<()> {
        let mut state = self.unsaved.lock();
        if state.serials.get(&ticket.number) != Some(&ticket.serial) {
            return Ok(());
        }
        unsaved::drop_kept(&state.directory, ticket.number)?;
        state.serials.remove(&ticket.number);
        Ok(())
    }

    fn unsaved(&self) -> Vec<UnsavedTicket> {
        let state = self.unsaved.lock();
        let earlier = state.serials.iter().filter(|(_, serial)| **serial == 0);
        earlier.map(|(&number, &serial)| UnsavedTicket { number, serial }).collect()
    }

    fn open_unsaved(&self, ticket: UnsavedTicket) -> io::Result<(Arc<dyn CacheFile>, UnsavedRecord)> {
        let (data, record) = {
            let state = self.unsaved.lock();
            let path = |name: String| state.directory.path(&name);
            (path(unsaved::data_name(ticket.number)), path(unsaved::record_name(ticket.number)))
        };
        let damaged = || {
            let text = format!("{} is damaged, or of another version of this program", record.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        if fs::metadata(&record).map_err(named(&record))?.len() > RECORD_MAX {
            return Err(damaged());
        }
        let decoded = UnsavedRecord::decode(&self.sealing, &fs::read(&record).map_err(named(&record))?)
            .ok_or_else(damaged)?;
        let opened = DiskFile::open(ticket.number, data.clone(), &self.unkept, self.cipher.as_ref())
            .map_err(named(&data))?;
        Ok((Arc::new(opened), decoded))
    }

    fn unsaved_place(&self, ticket: UnsavedTicket) -> String {
        self.unsaved.lock().directory.path(&unsaved::data_name(ticket.number)).display().to_string()
    }

    fn bytes_used(&self) -> u64 {
        self.state.lock().kept.bytes() + self.unkept.load(Ordering::Relaxed)
    }

    fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    fn fits(&self, wanted: u64) -> bool {
        self.state.try_lock().is_some_and(|state| self.has_room(&state, wanted))
    }

    fn make_room(&self, wanted: u64) -> bool {
        let mut state = self.state.lock();
        if self.has_room(&state, wanted) {
            return true;
        }
        // Where there are too many files, some more go, so that the next ones need no search.
        let is_by_count = state.kept.files() > state.files_max;
        let files_max = state.files_max - if is_by_count { state.files_max / 64 } else { 0 };
        let fits = |state: &State| self.has_room(state, wanted) && state.kept.files() <= files_max;
        let names: Vec<_> =
            state.kept.oldest_first().map(|(name, record)| (name.clone(), record.file)).collect();
        for ((cell, fid), file) in names {
            if state.is_unused(file) {
                state.remove(&cell, fid, |id| self.path(id));
            }
            if fits(&state) {
                return true;
            }
        }
        false
    }

    fn blocks(&self) -> bool {
        true
    }

    fn shut_down(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.rewrite_index()?;
        rustix::fs::syncfs(fs::File::open(&self.dir)?)?;
        trust::stopped(&self.dir)
    }
}
