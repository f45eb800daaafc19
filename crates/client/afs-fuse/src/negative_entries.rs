//! Table of negative entries: names of which the kernel remembers that they do not exist.
//!
//! A compiler looks up the same missing headers again and again, so that ENOENT is worth keeping. The kernel has to be
//! notified name by name when that ends; a bounded number of them is therefore recorded here.

use fuser::INodeNo;
use std::collections::{HashMap, HashSet, VecDeque};

use parking_lot::Mutex;

/// Most names recorded; about 100 bytes each.
const NAMES_MAX: usize = 64 * 1024;

/// Missing names by directory.
#[derive(Default)]
pub(crate) struct NegativeEntries(Mutex<Table>);

#[derive(Default)]
struct Table {
    names: HashMap<u64, HashSet<Box<[u8]>>>,
    count: usize,
    /// Directories in the order of their first name; some may no longer be in `names`.
    order: VecDeque<u64>,
}

impl NegativeEntries {
    /// Records a name. Returns the names to invalidate to keep the bound: all those of the directory recorded first.
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

    /// The name exists now. Its entry is not to be taken from the kernel for having been a missing one: `getcwd(2)` fails where a
    /// working directory, or one above, has lost its entry.
    pub(crate) fn exists(&self, directory: INodeNo, name: &[u8]) {
        let mut table = self.0.lock();
        if table.names.get_mut(&directory.0).is_some_and(|names| names.remove(name)) {
            table.count -= 1;
        }
    }

    /// Removes and returns all names recorded for a directory.
    pub(crate) fn take(&self, directory: INodeNo) -> Vec<Box<[u8]>> {
        self.0.lock().take(directory.0)
    }
}

impl Table {
    fn take(&mut self, directory: u64) -> Vec<Box<[u8]>> {
        let Some(names) = self.names.remove(&directory) else { return Vec::new() };
        self.count -= names.len();
        // Without this, directories that come and go would grow the queue without bound.
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
    fn a_name_that_was_made_is_not_taken() {
        let negatives = NegativeEntries::default();
        let _ = ["made", "missing"].map(|name| negatives.note(INodeNo(5), name.as_bytes()));
        negatives.exists(INodeNo(5), b"made");
        negatives.exists(INodeNo(6), b"made");
        assert_eq!(negatives.take(INodeNo(5)), [Box::from(&b"missing"[..])]);
        assert_eq!(negatives.0.lock().count, 0);
    }

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
