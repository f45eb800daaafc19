//! Record of acknowledged operations, against which the files of a cell are verified.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use afs_sim::SimRng;

/// Contents of a file: bytes that follow from a number, and their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    number: u64,
    length: u64,
}

impl Version {
    /// Contents of a file that was created and not written yet.
    pub const EMPTY: Self = Self { number: 0, length: 0 };

    /// Contents of `length` bytes.
    #[must_use]
    pub const fn new(number: u64, length: u64) -> Self {
        Self { number, length }
    }

    /// Contents with a length that follows from the number too: some are short enough to be stored with the status,
    /// some fill many chunks.
    #[must_use]
    pub fn of_any_length(number: u64) -> Self {
        let mut rng = SimRng::new(number);
        let length = match rng.below(10) {
            0 => 0,
            1..=4 => rng.between(1, 300),
            5..=8 => rng.between(4_000, 60_000),
            _ => rng.between(900_000, 1_300_000),
        };
        Self { number, length }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.length).unwrap_or(0)];
        SimRng::new(self.number).fill(&mut bytes);
        bytes
    }
}

/// Possible contents of each name; more than one only after an operation that ended without a reply, or with an error.
#[derive(Clone, Debug, Default)]
pub struct Acknowledged {
    names: BTreeMap<String, Vec<Option<Version>>>,
}

impl Acknowledged {
    /// An operation begins that gives `name` these contents, or removes it.
    pub fn attempt(&mut self, name: &str, outcome: Option<Version>) {
        self.names.entry(name.to_owned()).or_insert_with(|| vec![None]).push(outcome);
    }

    /// A write of a file begins. A new file is empty for a moment, since creating and closing it are two calls.
    pub fn attempt_to_write(&mut self, name: &str, version: Version) {
        if self.known(name).is_none() {
            self.attempt(name, Some(Version::EMPTY));
        }
        self.attempt(name, Some(version));
    }

    /// The operation was acknowledged: from now on only its result may be seen.
    pub fn acknowledge(&mut self, name: &str) {
        if let Some(possible) = self.names.get_mut(name) {
            possible.drain(..possible.len().saturating_sub(1));
        }
    }

    /// The contents of a name, if they are certain.
    #[must_use]
    pub fn known(&self, name: &str) -> Option<Version> {
        match self.names.get(name).map(Vec::as_slice) {
            Some([one]) => *one,
            _ => None,
        }
    }

    /// Names that certainly exist.
    #[must_use]
    pub fn present(&self) -> Vec<String> {
        self.names.keys().filter(|name| self.known(name).is_some()).cloned().collect()
    }

    /// Adds the record of other names.
    pub fn merge(&mut self, other: Self) {
        self.names.extend(other.names);
    }

    /// Compares a folder with the record: every name, and that there are no others.
    ///
    /// # Panics
    /// If acknowledged data is missing, or there is data that was not written.
    pub fn verify(&self, folder: &Path) {
        assert!(!self.names.is_empty(), "nothing was done");
        for (name, possible) in &self.names {
            let seen = read(&folder.join(name))
                .unwrap_or_else(|error| panic!("{name}, which may be one of {possible:?}: {error}"));
            let fits = |version: &Option<Version>| version.map(Version::bytes) == seen;
            let shown = seen.as_ref().map(Vec::len);
            assert!(possible.iter().any(fits), "{name} has {shown:?} bytes, it may be one of {possible:?}");
        }
        for name in crate::live::files::names(folder) {
            assert!(self.names.contains_key(&name), "{name} is there, and nobody made it");
        }
    }
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unacknowledged_change_may_be_there_or_not() {
        let mut expected = Acknowledged::default();
        let one = Version::of_any_length(1);
        expected.attempt_to_write("a", one);
        assert_eq!(expected.names["a"], [None, Some(Version::EMPTY), Some(one)]);
        assert_eq!(expected.known("a"), None);
        expected.acknowledge("a");
        assert_eq!(expected.known("a"), Some(one));
        expected.attempt("a", None);
        assert_eq!(expected.names["a"], [Some(one), None]);
        expected.acknowledge("a");
        assert_eq!(expected.names["a"], [None]);
    }
}
