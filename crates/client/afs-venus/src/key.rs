//! Internal keys: a cell by its index in the configuration, an object by cell and fid.

use std::hash::{BuildHasherDefault, Hasher};

use afs_wire::ids::{Fid, Uniquifier, VolumeId};

use crate::api::NodeId;

/// A cell, by its index in [`crate::VenusConfig::cells`].
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
    pub fn sibling(&self, vnode: afs_wire::ids::VnodeId, unique: Uniquifier) -> Key {
        Key { cell: self.cell, fid: Fid { vnode, unique, ..self.fid } }
    }

    /// True for the root directory of a volume.
    pub fn is_volume_root(&self) -> bool {
        self.fid == Fid::root(self.fid.volume)
    }
}

/// One of the two trees of a cell, by its name in the directory of all cells.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum CellTree {
    /// By the cell's name: read-only if there is such a volume.
    Usual,
    /// With a dot in front: read-write.
    ReadWrite,
}

/// Target of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum NodeTarget {
    /// The synthetic directory of all cells.
    Cells,
    /// The synthetic directory of a volume's snapshots.
    Snapshots(CellIndex, VolumeId),
    /// In place of the root of a cell whose servers did not reply.
    Unreached(CellIndex, CellTree),
    /// An object of a volume.
    Object(Key),
}

impl NodeTarget {
    /// The node id of the target, unless another target has it: mixed bits of cell and fid.
    pub fn node_id(&self) -> NodeId {
        let key = match *self {
            NodeTarget::Cells => return NodeId::ROOT,
            // No object has the vnode number 0.
            NodeTarget::Snapshots(cell, volume) => Key::new(cell, Fid::whole_volume(volume)),
            // No volume has the number 0.
            NodeTarget::Unreached(cell, tree) => {
                Key::new(cell, Fid { unique: Uniquifier(tree as u32), ..Fid::default() })
            }
            NodeTarget::Object(key) => key,
        };
        let fid = key.fid;
        let first = mix(u64::from(fid.volume.0) << 32 | u64::from(fid.vnode.0));
        let second = mix(first ^ (u64::from(key.cell.0) << 32 | u64::from(fid.unique.0)));
        // 0 is invalid, 1 is the root; the top bit is 0 for programs with signed inode numbers.
        NodeId((second >> 1).max(2))
    }
}

/// The finalizer of SplitMix64: every input bit affects every output bit, and the function is a bijection.
fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Hasher without a random seed: maps behave the same in every run.
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

/// A hash map whose iteration order is never used.
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
