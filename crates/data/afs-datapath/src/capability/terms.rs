//! Terms on which a drive sends a chunk to a client: which bytes of it, for which file, since which generation.

use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};

use super::{Generation, GroupTag, StoreNumber};

/// On what terms a chunk is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The store of the drive that has the chunk.
    pub store: StoreNumber,
    /// First byte of the chunk that may be read.
    pub start: u32,
    /// End of what may be read. Pieces are sent whole, so that start and end are to be their borders.
    pub end: u32,
    /// The file of which it is a part. A revocation for the file ends its bindings, and no other ones of the group.
    pub file: GroupTag,
    /// The latest generation of the drive when the rights to the file were looked at.
    pub generation: Generation,
}

impl Encode for Terms {
    fn encode(&self, out: &mut Vec<u8>) {
        self.store.encode(out);
        self.start.encode(out);
        self.end.encode(out);
        self.file.encode(out);
        self.generation.encode(out);
    }
}

impl Decode for Terms {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            store: Decode::decode(r)?,
            start: r.u32()?,
            end: r.u32()?,
            file: Decode::decode(r)?,
            generation: Decode::decode(r)?,
        })
    }
}
