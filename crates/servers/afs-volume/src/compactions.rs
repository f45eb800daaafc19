//! Bounded set of slots to be compacted.

use std::collections::BTreeSet;

use afs_wire::ids::{VnodeId, VolumeId};
use parking_lot::{Mutex, MutexGuard};

use crate::ids::SlotIndex;

/// A slot of a file.
pub(crate) type Scattered = (VolumeId, VnodeId, SlotIndex);

/// A bounded set; a slot that does not fit is added again with its next change.
#[derive(Default)]
pub(crate) struct Compactions(Mutex<BTreeSet<Scattered>>);

impl Compactions {
    pub(crate) fn add(&self, volume: VolumeId, vnode: VnodeId, slot: SlotIndex) {
        let mut slots = self.lock();
        if slots.len() < SLOTS_MAX {
            slots.insert((volume, vnode, slot));
        }
    }

    pub(crate) fn take(&self) -> Option<Scattered> {
        self.lock().pop_first()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Scattered>> {
        self.0.lock()
    }
}

const SLOTS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_bounded_and_one_that_did_not_fit_is_taken_later() {
        let slots = Compactions::default();
        let add = |n: usize| slots.add(VolumeId(7), VnodeId(n as u32), SlotIndex(0));
        (0..2 * SLOTS_MAX).for_each(add);
        assert_eq!(slots.lock().len(), SLOTS_MAX);
        assert_eq!(slots.take(), Some((VolumeId(7), VnodeId(0), SlotIndex(0))));
        add(SLOTS_MAX);
        assert!(slots.lock().contains(&(VolumeId(7), VnodeId(SLOTS_MAX as u32), SlotIndex(0))));
    }
}
