//! Segments as files of one directory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FallocateFlags, fallocate, fstatvfs};

use crate::drive::Usage;
use crate::segment_store::SegmentStore;

/// A directory with one file for each segment, held exclusively by a lock on its `lock` file.
#[derive(Debug)]
pub struct FileSegments {
    path: PathBuf,
    directory: File,
    /// Open files, dropped all together when there are too many.
    open: Mutex<BTreeMap<u64, Arc<File>>>,
    /// Files written to since their last sync. They stay open: the kernel tells a failed write-back to descriptors that were open then.
    unsynced: Mutex<BTreeMap<u64, Arc<File>>>,
    /// Segments whose directory entry is not known to be durable, from before they are made.
    fresh: Mutex<BTreeSet<u64>>,
    _lock: File,
}

impl FileSegments {
    /// Opens the directory, creating it (one level) where it does not exist.
    ///
    /// Fails with `ResourceBusy` when another process, or another drive of this one, has it open.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        match fs::create_dir(&path) {
            Ok(()) => sync_parent(&path)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let what = format!("{} is in use by another process", path.display());
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, what));
            }
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        let directory = File::open(&path)?;
        Ok(Self {
            path,
            directory,
            open: Mutex::default(),
            unsynced: Mutex::default(),
            fresh: Mutex::default(),
            _lock: lock,
        })
    }

    fn file(&self, segment: u64, create: bool) -> io::Result<Arc<File>> {
        if let Some(file) = lock(&self.open).get(&segment) {
            return Ok(file.clone());
        }
        if let Some(file) = lock(&self.unsynced).get(&segment) {
            return Ok(file.clone());
        }
        let path = self.path_of(segment);
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Err(error) if create && error.kind() == io::ErrorKind::NotFound => {
                // Another thread may write to it and sync it as soon as it is there.
                lock(&self.fresh).insert(segment);
                OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?
            }
            other => other?,
        };
        let file = Arc::new(file);
        let mut open = lock(&self.open);
        if open.len() >= OPEN_MAX {
            open.clear();
        }
        Ok(open.entry(segment).or_insert(file).clone())
    }

    fn path_of(&self, segment: u64) -> PathBuf {
        self.path.join(format!("{segment:016x}{SUFFIX}"))
    }
}

impl SegmentStore for FileSegments {
    fn list(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
            if let Some(Ok(number)) = number.map(|hex| u64::from_str_radix(hex, 16)) {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn len(&self, segment: u64) -> io::Result<u64> {
        Ok(self.file(segment, false)?.metadata()?.len())
    }

    fn read_at(&self, segment: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file(segment, false)?.read_exact_at(out, offset)
    }

    fn write_at(&self, segment: u64, offset: u64, data: &[u8]) -> io::Result<()> {
        let file = self.file(segment, true)?;
        lock(&self.unsynced).entry(segment).or_insert_with(|| file.clone());
        file.write_all_at(data, offset)
    }

    fn sync(&self, segment: u64) -> io::Result<()> {
        // What is written from here on is the next sync's.
        let pinned = lock(&self.unsynced).remove(&segment);
        let file = pinned.map_or_else(|| self.file(segment, false), Ok)?;
        if let Err(error) = file.sync_data() {
            lock(&self.unsynced).insert(segment, file);
            return Err(error);
        }
        if lock(&self.fresh).contains(&segment) {
            self.directory.sync_all()?;
            lock(&self.fresh).remove(&segment);
        }
        Ok(())
    }

    fn punch(&self, segment: u64, offset: u64, len: u64) -> io::Result<()> {
        let file = self.file(segment, false)?;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&*file, flags, offset, len) {
            // A file system without holes: the bytes are overwritten, so that they read as freed; the room comes back with
            // the whole segment.
            Err(rustix::io::Errno::OPNOTSUPP) => overwrite(&file, offset, len),
            other => Ok(other?),
        }
    }

    fn remove(&self, segment: u64) -> io::Result<()> {
        lock(&self.open).remove(&segment);
        lock(&self.unsynced).remove(&segment);
        match fs::remove_file(self.path_of(segment)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn usage(&self) -> io::Result<Usage> {
        let stat = fstatvfs(&self.directory)?;
        Ok(Usage { free: stat.f_bavail * stat.f_frsize, total: stat.f_blocks * stat.f_frsize })
    }
}

fn overwrite(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let zeros = [0; 4096];
    (offset..offset + len).step_by(zeros.len()).try_for_each(|at| file.write_all_at(&zeros, at))
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => Ok(()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const SUFFIX: &str = ".seg";
const OPEN_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stays_open_until_what_was_written_to_it_is_synced() {
        let directory = tempfile::tempdir().unwrap();
        let segments = FileSegments::open(directory.path().join("drive")).unwrap();
        segments.write_at(1, 0, b"unsynced").unwrap();
        let first = Arc::downgrade(&segments.file(1, false).unwrap());
        let open_others = |from: u64| {
            for other in from..from + 2 * OPEN_MAX as u64 {
                segments.write_at(other, 0, b"x").unwrap();
                segments.sync(other).unwrap();
            }
        };
        open_others(10);
        let again = segments.file(1, false).unwrap();
        assert!(first.upgrade().is_some_and(|first| Arc::ptr_eq(&first, &again)));
        drop(again);
        segments.sync(1).unwrap();
        open_others(1000);
        assert!(first.upgrade().is_none());
        assert!(lock(&segments.unsynced).is_empty() && lock(&segments.fresh).is_empty());
    }

    #[test]
    fn a_new_file_is_known_to_need_its_directory_synced_before_anybody_can_see_it() {
        let directory = tempfile::tempdir().unwrap();
        let segments = FileSegments::open(directory.path().join("drive")).unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| (1..=300).for_each(|segment| segments.write_at(segment, 0, b"x").unwrap()));
            for segment in 1..=300 {
                while !segments.path_of(segment).exists() {
                    std::hint::spin_loop();
                }
                assert!(lock(&segments.fresh).contains(&segment), "segment {segment}");
            }
        });
    }
}
