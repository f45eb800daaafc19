//! How Venus names things inside: a cell by its place in the configuration, an object by cell and fid.

use std::hash::{BuildHasherDefault, Hasher};

use afs_wire::ids::{Fid, VolumeId};

use crate::api::NodeId;

/// A cell, by its place in [`crate::VenusConfig::cells`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct CellIndex(pub u16);

/// An object of any cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Key {
    pub cell: CellIndex,
    pub fid: Fid,
}

impl Key {
    pub fn new(cell: CellIndex, fid: Fid) -> Self {
        Key { cell, fid }
    }

    pub fn volume(&self) -> (CellIndex, VolumeId) {
        (self.cell, self.fid.volume)
    }

    /// Another object of the same volume.
    pub fn sibling(&self, vnode: afs_wire::ids::VnodeId, unique: afs_wire::ids::Uniquifier) -> Key {
        Key { cell: self.cell, fid: Fid { vnode, unique, ..self.fid } }
    }

    /// Whether it is the root directory of its volume.
    pub fn is_volume_root(&self) -> bool {
        self.fid == Fid::root(self.fid.volume)
    }
}

/// What a node stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum NodeTarget {
    /// The synthetic directory of all cells.
    Cells,
    /// The synthetic directory of a volume's snapshots.
    Snapshots(CellIndex, VolumeId),
    /// An object of a volume.
    Object(Key),
}

impl NodeTarget {
    /// The node id it has, if no other place has it already: well mixed bits of cell and fid.
    pub fn node_id(&self) -> NodeId {
        let key = match *self {
            NodeTarget::Cells => return NodeId::ROOT,
            // No object has the vnode number 0.
            NodeTarget::Snapshots(cell, volume) => Key::new(cell, Fid::whole_volume(volume)),
            NodeTarget::Object(key) => key,
        };
        let fid = key.fid;
        let first = mix(u64::from(fid.volume.0) << 32 | u64::from(fid.vnode.0));
        let second = mix(first ^ (u64::from(key.cell.0) << 32 | u64::from(fid.unique.0)));
        // 0 is nobody, 1 the root, and the top bit is left clear for programs that keep inode numbers signed.
        NodeId((second >> 1).max(2))
    }
}

/// The finalizer of SplitMix64: every input bit reaches every output bit, and no two inputs share an output.
fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// A hasher without a random seed: maps behave the same in every run.
#[derive(Default)]
pub(crate) struct MixHasher(u64);

impl Hasher for MixHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u16(&mut self, n: u16) {
        self.write_u64(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = mix(self.0.rotate_left(5) ^ n);
    }
}

/// A hash map whose order is never looked at.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<MixHasher>>;

#[cfg(test)]
mod tests {
    use afs_wire::ids::{Uniquifier, VnodeId};

    use super::*;

    #[test]
    fn node_ids_of_a_volume_do_not_meet() {
        let mut seen = std::collections::BTreeSet::new();
        for vnode in 1..20_000 {
            let fid = Fid::new(VolumeId(536_870_915), VnodeId(vnode), Uniquifier(vnode + 7));
            let id = NodeTarget::Object(Key::new(CellIndex(0), fid)).node_id();
            assert!(id.0 > 1 && id.0 >> 63 == 0);
            assert!(seen.insert(id), "{fid}");
        }
    }
}
