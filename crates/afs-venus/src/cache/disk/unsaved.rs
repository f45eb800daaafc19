//! Unsaved data on disk: a second name of its cache file, and a record, in an order that a crash at any place leaves sound.
//!
//! ```text
//! DIR/unsaved/N          the data: another name (hard link) of the cache file N
//! DIR/unsaved/N.record   its record
//! DIR/unsaved/N.new      a record that is being written
//! ```
//!
//! To keep: the data is flushed, named, and the names are flushed; then the record is written, flushed and renamed, and the names
//! are flushed again. To drop: the record is removed, the names are flushed, then the data is removed. Therefore a
//! record always has its data, and data without a record was not kept yet, or is not needed any more: it is swept.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::remove_if_there;

/// The operations on the disk of which the order matters.
pub(super) trait UnsavedDisk {
    /// Flushes the data of a cache file.
    fn flush_data(&self, number: u64) -> io::Result<()>;
    /// Gives the data its second name. Success if it has it already.
    fn name_data(&self, number: u64) -> io::Result<()>;
    /// Makes a file of these contents and flushes it, in place of an old one.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
    /// Renames a file, over another one.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a name. Success if it is not there.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Flushes the names.
    fn flush_names(&self) -> io::Result<()>;
    /// All names.
    fn names(&self) -> io::Result<Vec<String>>;
}

/// Keeps data with its record, durably, or in place of an older record of the same data.
pub(super) fn keep(disk: &impl UnsavedDisk, number: u64, record: &[u8]) -> io::Result<()> {
    disk.flush_data(number)?;
    disk.name_data(number)?;
    disk.flush_names()?;
    let new = format!("{number:x}.new");
    disk.write(&new, record)?;
    disk.rename(&new, &record_name(number))?;
    disk.flush_names()
}

/// Drops data and record. After a crash in between there is no record.
pub(super) fn drop_kept(disk: &impl UnsavedDisk, number: u64) -> io::Result<()> {
    disk.remove(&record_name(number))?;
    disk.flush_names()?;
    disk.remove(&data_name(number))
}

/// Removes what a crash left, and returns the numbers of the data with a record, in order.
pub(super) fn sweep(disk: &impl UnsavedDisk) -> io::Result<Vec<u64>> {
    let names: BTreeSet<String> = disk.names()?.into_iter().collect();
    let mut kept = Vec::new();
    for name in &names {
        match name.strip_suffix(".record").map(|number| u64::from_str_radix(number, 16)) {
            Some(Ok(number)) if names.contains(&data_name(number)) => kept.push(number),
            Some(_) => tracing::error!("'{name}' in the cache's unsaved data has lost its data"),
            None if !names.contains(&format!("{name}.record")) => disk.remove(name)?,
            None => {}
        }
    }
    kept.sort_unstable();
    Ok(kept)
}

pub(super) fn data_name(number: u64) -> String {
    format!("{number:x}")
}

pub(super) fn record_name(number: u64) -> String {
    format!("{number:x}.record")
}

/// A directory of the file system.
pub(super) struct UnsavedDirectory {
    directory: PathBuf,
    /// The cache file of a number.
    path_of: fn(&Path, u64) -> PathBuf,
    cache: PathBuf,
}

impl UnsavedDirectory {
    /// The directory in a cache, made if it is missing.
    pub fn open(cache: &Path, path_of: fn(&Path, u64) -> PathBuf) -> io::Result<Self> {
        let directory = cache.join("unsaved");
        if !directory.is_dir() {
            fs::create_dir(&directory)?;
            File::open(cache)?.sync_all()?;
            cache.parent().map_or(Ok(()), |above| File::open(above)?.sync_all())?;
        }
        Ok(UnsavedDirectory { directory, path_of, cache: cache.to_owned() })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl UnsavedDisk for UnsavedDirectory {
    fn flush_data(&self, number: u64) -> io::Result<()> {
        File::open((self.path_of)(&self.cache, number))?.sync_data()
    }

    fn name_data(&self, number: u64) -> io::Result<()> {
        match fs::hard_link((self.path_of)(&self.cache, number), self.path(&data_name(number))) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = fs::OpenOptions::new();
        let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(self.path(name))?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        remove_if_there(&self.path(name))
    }

    fn flush_names(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let named = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        fs::read_dir(&self.directory)?.map(named).collect()
    }
}

#[cfg(test)]
mod tests;
