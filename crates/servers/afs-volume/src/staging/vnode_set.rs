//! Bit set of the vnodes of the new state.

use std::collections::BTreeMap;

use afs_wire::ids::VnodeId;

/// A set of vnode numbers: a word for each 64 numbers with at least one member.
#[derive(Default)]
pub(super) struct VnodeSet(BTreeMap<u32, u64>);

impl VnodeSet {
    pub(super) fn insert(&mut self, vnode: VnodeId) {
        *self.0.entry(vnode.0 / 64).or_default() |= 1 << (vnode.0 % 64);
    }

    pub(super) fn contains(&self, vnode: VnodeId) -> bool {
        self.0.get(&(vnode.0 / 64)).is_some_and(|word| word >> (vnode.0 % 64) & 1 != 0)
    }
}
