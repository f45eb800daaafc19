//! Fids: volume, vnode, uniquifier; and data versions.

use crate::xdr::{Decode, DecodeError, Encode, Reader};
use std::fmt;

id! {
    /// A volume's number, unique in its cell.
    pub struct VolumeId(u32);
}

id! {
    /// An object's number within its volume. Odd for directories, even for files and links.
    pub struct VnodeId(u32);
}

impl VnodeId {
    /// The root directory of every volume.
    pub const ROOT: Self = Self(1);

    /// Directories have odd numbers (`docs/protocol/fileserver.md` "6. Vnodes, modes, versions").
    pub const fn is_directory(self) -> bool {
        self.0 & 1 == 1
    }
}

id! {
    /// Distinguishes successive objects with one vnode number. Never reused within a volume.
    pub struct Uniquifier(u32);
}

id! {
    /// Counter of changes to an object's data.
    pub struct DataVersion(u64);
}

impl DataVersion {
    /// The version after one more change.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

/// An object in a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fid {
    /// The volume it is in.
    pub volume: VolumeId,
    /// Its number there.
    pub vnode: VnodeId,
    /// Its uniquifier.
    pub unique: Uniquifier,
}

impl Fid {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 12;

    /// The fid of these three numbers.
    pub const fn new(volume: VolumeId, vnode: VnodeId, unique: Uniquifier) -> Self {
        Self { volume, vnode, unique }
    }

    /// The root directory of a volume: vnode 1, uniquifier 1.
    pub const fn root(volume: VolumeId) -> Self {
        Self { volume, vnode: VnodeId::ROOT, unique: Uniquifier(1) }
    }

    /// The fid of a broken callback that stands for the whole volume (`docs/protocol/callback.md` "4. CallBack
    /// semantics").
    pub const fn whole_volume(volume: VolumeId) -> Self {
        Self { volume, vnode: VnodeId(0), unique: Uniquifier(0) }
    }

    /// The fid of a broken callback that stands for the rights of a client's users: what they rest on in the protection
    /// database has changed (`docs/protocol/extensions.md` "Rights that last as long as promises").
    pub const RIGHTS: Self = Self::whole_volume(VolumeId(0));

    /// Whether the object is a directory, by the parity of its number.
    pub const fn is_directory(self) -> bool {
        self.vnode.is_directory()
    }
}

impl fmt::Display for Fid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.volume, self.vnode, self.unique)
    }
}

impl Encode for Fid {
    fn encode(&self, out: &mut Vec<u8>) {
        self.volume.encode(out);
        self.vnode.encode(out);
        self.unique.encode(out);
    }
}

impl Decode for Fid {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { volume: Decode::decode(r)?, vnode: Decode::decode(r)?, unique: Decode::decode(r)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fid_is_three_words() {
        let root = Fid::root(VolumeId(536870912));
        assert_eq!(root.to_bytes(), [0x20, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!(Fid::from_bytes(&root.to_bytes()).unwrap(), root);
        assert_eq!(root.to_string(), "536870912.1.1");
        assert!(root.is_directory() && !VnodeId(2).is_directory());
    }
}
