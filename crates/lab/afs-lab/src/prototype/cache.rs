//! Cache of a client: versions by path with what they are of, of which the longest unused goes first.

use super::call::Stamp;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Copies that a client of the paper's measurement could hold (Table III).
pub(super) const ENTRIES_MAX: usize = 300;

/// A cache of files, or of status. All copies are suspect.
#[derive(Debug)]
pub(super) struct Cache<T> {
    entries: BTreeMap<String, Entry<T>>,
    uses: u64,
}

#[derive(Debug)]
struct Entry<T> {
    stamp: Stamp,
    copy: T,
    used: u64,
}

impl<T> Cache<T> {
    pub(super) fn new() -> Self {
        Self { entries: BTreeMap::new(), uses: 0 }
    }

    /// A copy and its version.
    pub(super) fn get(&mut self, path: &str) -> Option<(Stamp, &T)> {
        self.uses += 1;
        let entry = self.entries.get_mut(path)?;
        entry.used = self.uses;
        Some((entry.stamp, &entry.copy))
    }

    /// Keeps a copy.
    pub(super) fn put(&mut self, path: &str, stamp: Stamp, copy: T) {
        self.uses += 1;
        self.entries.insert(path.to_owned(), Entry { stamp, copy, used: self.uses });
        if self.entries.len() > ENTRIES_MAX {
            let oldest =
                self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(path, _)| path.clone());
            oldest.and_then(|path| self.entries.remove(&path));
        }
    }

    /// Gives a copy another version, if there is one.
    pub(super) fn renew(&mut self, path: &str, stamp: Stamp) {
        if let Some(entry) = self.entries.get_mut(path) {
            entry.stamp = stamp;
        }
    }

    pub(super) fn remove(&mut self, path: &str) {
        self.entries.remove(path);
    }
}

/// A whole file in the directory of a cache. It is removed with this.
#[derive(Debug)]
pub(super) struct Copy(PathBuf);

impl Copy {
    /// A new one, empty, with this number.
    pub(super) fn create(directory: &Path, number: u64) -> io::Result<(Self, File)> {
        let path = directory.join(number.to_string());
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        Ok((Self(path), file))
    }

    pub(super) fn open(&self) -> io::Result<File> {
        File::open(&self.0)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_goes_first() {
        let mut cache = Cache::new();
        for number in 0..ENTRIES_MAX {
            cache.put(&number.to_string(), Stamp(1), ());
        }
        assert_eq!(cache.get("0"), Some((Stamp(1), &())));
        cache.put("another", Stamp(2), ());
        assert_eq!(cache.get("1"), None);
        assert_eq!(cache.get("2"), Some((Stamp(1), &())));
    }
}
