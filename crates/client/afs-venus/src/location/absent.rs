//! Bounded table of the names of which it is believed for a while that they are no cell's.

use std::collections::BTreeMap;

use afs_rpc::Instant;
use afs_wire::ids::CellName;
use parking_lot::Mutex;

/// Limit of the names.
const ABSENT_MAX: usize = 1024;

/// Names of no cell, and until when that is believed.
#[derive(Default)]
pub(super) struct AbsentCells(Mutex<BTreeMap<CellName, Instant>>);

impl AbsentCells {
    pub fn has(&self, name: &CellName, now: Instant) -> bool {
        self.0.lock().get(name).is_some_and(|until| now < *until)
    }

    /// Remembers a name. The one that is remembered for the shortest time makes room.
    pub fn note(&self, name: &CellName, until: Instant, now: Instant) {
        let mut absent = self.0.lock();
        if absent.len() >= ABSENT_MAX {
            absent.retain(|_, until| now < *until);
        }
        if absent.len() >= ABSENT_MAX
            && let Some(first) = absent.iter().min_by_key(|(_, until)| **until).map(|(name, _)| name.clone())
        {
            absent.remove(&first);
        }
        absent.insert(name.clone(), until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_the_one_that_ends_first_goes() {
        let absent = AbsentCells::default();
        let name = |n: u64| CellName::new(&format!("cell{n}.org")).unwrap();
        let at = |n: u64| Instant::from_nanos(n + 10);
        let most = ABSENT_MAX as u64;
        (0..=most).for_each(|n| absent.note(&name(n), at(n), Instant::ZERO));
        assert_eq!(absent.0.lock().len(), ABSENT_MAX);
        assert!(!absent.has(&name(0), Instant::ZERO) && absent.has(&name(1), Instant::ZERO));
        assert!(!absent.has(&name(1), at(1)), "it is over");
        absent.note(&name(0), at(9 * most), at(most));
        assert_eq!(absent.0.lock().len(), 1, "the others are over");
    }
}
