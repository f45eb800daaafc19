//! Cache of a client: versions by path, of which the longest unused goes first.

use super::server::Stamp;
use std::collections::BTreeMap;

/// Copies that a client of the paper's measurement could hold (Table III).
pub(super) const ENTRIES_MAX: usize = 300;

/// A cache of files, or of status. All copies are suspect.
#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: BTreeMap<String, (Stamp, u64)>,
    uses: u64,
}

impl Cache {
    /// The version of a copy.
    pub(super) fn get(&mut self, path: &str) -> Option<Stamp> {
        self.uses += 1;
        let (stamp, used) = self.entries.get_mut(path)?;
        *used = self.uses;
        Some(*stamp)
    }

    /// Keeps a copy.
    pub(super) fn put(&mut self, path: &str, stamp: Stamp) {
        self.uses += 1;
        self.entries.insert(path.to_owned(), (stamp, self.uses));
        if self.entries.len() > ENTRIES_MAX {
            let oldest = self.entries.iter().min_by_key(|(_, (_, used))| *used).map(|(path, _)| path.clone());
            oldest.and_then(|path| self.entries.remove(&path));
        }
    }

    pub(super) fn remove(&mut self, path: &str) {
        self.entries.remove(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_goes_first() {
        let mut cache = Cache::default();
        for number in 0..ENTRIES_MAX {
            cache.put(&number.to_string(), Stamp(1));
        }
        assert_eq!(cache.get("0"), Some(Stamp(1)));
        cache.put("another", Stamp(2));
        assert_eq!((cache.get("0"), cache.get("1"), cache.get("2")), (Some(Stamp(1)), None, Some(Stamp(1))));
    }
}
