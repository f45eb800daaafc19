//! Segment store of one directory: a file for each segment.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::disk_folder::DiskFolder;
use crate::drive::Usage;
use crate::folder::{Folder, FolderFile};
use crate::segment_store::SegmentStore;

/// A directory with one file for each segment.
#[derive(Debug)]
pub struct FileSegments<F: Folder = DiskFolder> {
    folder: F,
    /// Open files, dropped all together when there are too many.
    open: Mutex<BTreeMap<u64, Arc<F::File>>>,
    /// Files written since their last sync. They stay open: the kernel reports a failed write-back only to
    /// descriptors that were open then.
    unsynced: Mutex<BTreeMap<u64, Arc<F::File>>>,
    /// Segments whose directory entry may not be durable; added before the file is created.
    fresh: Mutex<BTreeSet<u64>>,
}

impl FileSegments {
    /// Opens the directory, creating it (one level) if it does not exist.
    ///
    /// Fails with `ResourceBusy` when another process, or another drive of this one, has it open.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        Ok(Self::over(DiskFolder::open(path)?))
    }

    /// Opens a directory that is there, for reading alone.
    ///
    /// Fails with `ResourceBusy` as [`FileSegments::open`].
    pub fn read_only(path: impl Into<PathBuf>) -> io::Result<Self> {
        Ok(Self::over(DiskFolder::read_only(path)?))
    }
}

impl<F: Folder> FileSegments<F> {
    /// The segment store of a directory.
    pub fn over(folder: F) -> Self {
        Self { folder, open: Mutex::default(), unsynced: Mutex::default(), fresh: Mutex::default() }
    }

    fn file(&self, segment: u64, create: bool) -> io::Result<Arc<F::File>> {
        if let Some(file) = self.open.lock().get(&segment) {
            return Ok(file.clone());
        }
        if let Some(file) = self.unsynced.lock().get(&segment) {
            return Ok(file.clone());
        }
        let name = name_of(segment);
        let file = match self.folder.open(&name) {
            Err(error) if create && error.kind() == io::ErrorKind::NotFound => {
                // Another thread may write to it and sync it as soon as it exists.
                self.fresh.lock().insert(segment);
                self.folder.create(&name)?
            }
            other => other?,
        };
        let file = Arc::new(file);
        let mut open = self.open.lock();
        if open.len() >= OPEN_MAX {
            open.clear();
        }
        Ok(open.entry(segment).or_insert(file).clone())
    }
}

impl<F: Folder> SegmentStore for FileSegments<F> {
    fn list(&self) -> io::Result<Vec<u64>> {
        let names = self.folder.names()?;
        let numbers = names.iter().filter_map(|name| name.strip_suffix(SUFFIX));
        let mut numbers: Vec<u64> =
            numbers.filter_map(|number| u64::from_str_radix(number, 16).ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn place(&self, segment: u64) -> String {
        self.folder.place(&name_of(segment))
    }

    fn len(&self, segment: u64) -> io::Result<u64> {
        self.file(segment, false)?.length()
    }

    fn read_at(&self, segment: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file(segment, false)?.read_at(offset, out)
    }

    fn write_at(&self, segment: u64, offset: u64, data: &[u8]) -> io::Result<()> {
        let file = self.file(segment, true)?;
        self.unsynced.lock().entry(segment).or_insert_with(|| file.clone());
        file.write_at(offset, data)
    }

    fn sync(&self, segment: u64) -> io::Result<()> {
        // Later writes belong to the next sync.
        let pinned = self.unsynced.lock().remove(&segment);
        let file = pinned.map_or_else(|| self.file(segment, false), Ok)?;
        if let Err(error) = file.sync() {
            self.unsynced.lock().insert(segment, file);
            return Err(error);
        }
        if self.fresh.lock().contains(&segment) {
            self.folder.sync()?;
            self.fresh.lock().remove(&segment);
        }
        Ok(())
    }

    fn punch(&self, segment: u64, offset: u64, len: u64) -> io::Result<()> {
        self.file(segment, false)?.punch(offset, len)
    }

    fn remove(&self, segment: u64) -> io::Result<()> {
        self.open.lock().remove(&segment);
        self.unsynced.lock().remove(&segment);
        self.fresh.lock().remove(&segment);
        match self.folder.remove(&name_of(segment)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn usage(&self) -> io::Result<Usage> {
        self.folder.usage()
    }
}

fn name_of(segment: u64) -> String {
    format!("{segment:016x}{SUFFIX}")
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
        assert!(segments.unsynced.lock().is_empty() && segments.fresh.lock().is_empty());
    }

    #[test]
    fn a_file_that_is_removed_before_it_is_synced_leaves_nothing_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        let segments = FileSegments::open(directory.path().join("drive")).unwrap();
        for segment in 1..=300 {
            segments.write_at(segment, 0, b"x").unwrap();
            segments.remove(segment).unwrap();
        }
        assert!(segments.open.lock().is_empty() && segments.unsynced.lock().is_empty());
        assert!(segments.fresh.lock().is_empty());
    }

    #[test]
    fn a_new_file_is_known_to_need_its_directory_synced_before_anybody_can_see_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("drive");
        let segments = FileSegments::open(&path).unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| (1..=300).for_each(|segment| segments.write_at(segment, 0, b"x").unwrap()));
            for segment in 1..=300 {
                while !path.join(name_of(segment)).exists() {
                    std::hint::spin_loop();
                }
                assert!(segments.fresh.lock().contains(&segment), "segment {segment}");
            }
        });
    }
}
