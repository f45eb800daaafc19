//! Names that the kernel remembers as not being there.
//!
//! A compiler asks for the same missing headers over and over, so "no such name" is worth keeping. The
//! kernel must be told name by name when that ends, so they are written down here, a bounded number.

use fuser::INodeNo;
use std::collections::{HashMap, HashSet, VecDeque};

use parking_lot::Mutex;

/// Most names written down; about 100 bytes each.
const NAMES_MAX: usize = 64 * 1024;

/// Missing names by directory.
#[derive(Default)]
pub(crate) struct NegativeEntries(Mutex<Table>);

#[derive(Default)]
struct Table {
    names: HashMap<u64, HashSet<Box<[u8]>>>,
    count: usize,
    /// Directories in the order in which they first got a name; some may be gone from `names`.
    order: VecDeque<u64>,
}

impl NegativeEntries {
    /// Writes a name down. Answers what has to be forgotten to keep the bound: all names of the
    /// directory that has been here longest.
    pub(crate) fn note(&self, directory: INodeNo, name: &[u8]) -> Option<(INodeNo, Vec<Box<[u8]>>)> {
        let mut guard = self.0.lock();
        let table = &mut *guard;
        let names = table.names.entry(directory.0).or_insert_with(|| {
            table.order.push_back(directory.0);
            HashSet::new()
        });
        if !names.insert(name.into()) {
            return None;
        }
        table.count += 1;
        if table.count <= NAMES_MAX { None } else { table.drop_oldest() }
    }

    /// All names written down for a directory; they are not written down any more.
    pub(crate) fn take(&self, directory: INodeNo) -> Vec<Box<[u8]>> {
        self.0.lock().take(directory.0)
    }
}

impl Table {
    fn take(&mut self, directory: u64) -> Vec<Box<[u8]>> {
        let Some(names) = self.names.remove(&directory) else { return Vec::new() };
        self.count -= names.len();
        // A directory that comes and goes would grow the queue without end.
        if self.order.len() > 2 * self.names.len() + 64 {
            self.order.retain(|d| self.names.contains_key(d));
        }
        names.into_iter().collect()
    }

    fn drop_oldest(&mut self) -> Option<(INodeNo, Vec<Box<[u8]>>)> {
        while let Some(oldest) = self.order.pop_front() {
            let names = self.take(oldest);
            if !names.is_empty() {
                return Some((INodeNo(oldest), names));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_once() {
        let negatives = NegativeEntries::default();
        for name in ["a.h", "b.h", "a.h"] {
            assert_eq!(negatives.note(INodeNo(5), name.as_bytes()), None);
        }
        assert_eq!(negatives.take(INodeNo(5)).len(), 2);
        assert!(negatives.take(INodeNo(5)).is_empty());
    }

    #[test]
    fn the_oldest_directory_makes_room() {
        let negatives = NegativeEntries::default();
        for n in 0..NAMES_MAX {
            assert_eq!(negatives.note(INodeNo(n as u64 / 1000), &n.to_le_bytes()), None);
        }
        let (directory, names) = negatives.note(INodeNo(9999), b"more").unwrap();
        assert_eq!((directory, names.len()), (INodeNo(0), 1000));
    }

    #[test]
    fn the_queue_of_directories_stays_small() {
        let negatives = NegativeEntries::default();
        for n in 0..10_000 {
            negatives.note(INodeNo(n), b"x");
            negatives.take(INodeNo(n));
        }
        assert!(negatives.0.lock().order.len() < 100);
    }
}
