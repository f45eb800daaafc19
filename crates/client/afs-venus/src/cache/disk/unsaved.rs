//! Unsaved data on disk: a second name of its cache file, and a record, in an order that a crash at any place leaves sound.
//!
//! ```text
//! DIR/unsaved/N          the data: another name (hard link) of the cache file N
//! DIR/unsaved/N.record   its record
//! DIR/unsaved/N.new      a record that does not count: it is being written, or its data is being dropped
//! ```
//!
//! To keep: the data and the record `N.new` are written and flushed, and the names are flushed; then the data gets its name, and the
//! names are flushed; then `N.new` becomes the record, and the names are flushed again. To drop: the record becomes `N.new`, the data is removed,
//! `N.new` is removed, and the names are flushed after each of the first two. Therefore a record always has its data, data
//! with `N.new` alone was not kept yet, or is not needed any more, and is swept; and data with neither has lost its record: it stays, and is named.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use afs_own::{self as own, Opening};

use super::local::remove_if_there;

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
    let new = new_name(number);
    disk.write(&new, record)?;
    disk.flush_names()?;
    disk.name_data(number)?;
    disk.flush_names()?;
    disk.rename(&new, &record_name(number))?;
    disk.flush_names()
}

/// Gives data that can get no record its name alone, so that it stays, and is named.
pub(super) fn name_alone(disk: &impl UnsavedDisk, number: u64) -> io::Result<()> {
    disk.remove(&new_name(number))?;
    disk.name_data(number)
}

/// Drops data and record. After a crash in between the record does not count.
pub(super) fn drop_kept(disk: &impl UnsavedDisk, number: u64) -> io::Result<()> {
    disk.rename(&record_name(number), &new_name(number))?;
    disk.flush_names()?;
    disk.remove(&data_name(number))?;
    disk.flush_names()?;
    disk.remove(&new_name(number))
}

/// Numbers of what a start finds, in order.
#[derive(Default)]
pub(super) struct Found {
    /// Data with its record.
    pub(super) kept: Vec<u64>,
    /// One of the two without the other. Their numbers are not given again.
    pub(super) lone: Vec<u64>,
}

/// Removes what a crash left, and says what is there.
pub(super) fn sweep(disk: &impl UnsavedDisk) -> io::Result<Found> {
    let names: BTreeSet<String> = disk.names()?.into_iter().collect();
    let numbers: BTreeSet<u64> = names.iter().filter_map(|name| number(name)).collect();
    let mut found = Found::default();
    let mut swept = Vec::new();
    for number in numbers {
        let is_there = |name: String| names.contains(&name);
        match [data_name(number), record_name(number), new_name(number)].map(is_there) {
            [true, true, _] => found.kept.push(number),
            [false, false, _] => {}
            [true, false, true] => disk.remove(&data_name(number))?,
            [true, false, false] | [false, true, _] => found.lone.push(number),
        }
        swept.push(new_name(number));
    }
    // After the data: alone it would be data that has lost its record.
    disk.flush_names()?;
    swept.iter().filter(|name| names.contains(*name)).try_for_each(|name| disk.remove(name))?;
    Ok(found)
}

/// Names in the log what one of two files is missing of.
pub(super) fn tell_lone(directory: &UnsavedDirectory, lone: &[u64]) {
    for number in lone {
        let (data, record) = (directory.path(&data_name(*number)), directory.path(&record_name(*number)));
        let (there, missing) = if data.exists() { (data, record) } else { (record, data) };
        tracing::error!(
            "{} is missing: what {} is of was not stored, and cannot be; put it back and mount again, or move the other away",
            missing.display(),
            there.display()
        );
    }
}

pub(super) fn data_name(number: u64) -> String {
    format!("{number:x}")
}

fn new_name(number: u64) -> String {
    format!("{number:x}.new")
}

/// The number of a file of any of the three kinds.
fn number(name: &str) -> Option<u64> {
    u64::from_str_radix(name.split_once('.').map_or(name, |(number, _)| number), 16).ok()
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
            cache.parent().map_or(Ok(()), |above| File::open(above)?.sync_all())?;
        }
        own::directory(&directory)?;
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
        let mut file = Opening::write().or_make().open_emptied(&self.path(name))?;
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
