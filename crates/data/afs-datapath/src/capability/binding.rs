//! Binding of a chunk to a group of objects: with it a client reads the chunk by a capability for the group.

use std::fmt;
use std::ops::Range;

use afs_drive::ChunkRef;
use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};
use subtle::ConstantTimeEq;

use super::proof::mac;
use super::{DriveKey, Generation, GroupTag, Refusal, StoreNumber};

/// What a binding says of a chunk.
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

/// A chunk's terms and a short MAC under the drive's key, which binds both to a group. So a drive keeps no owner of a chunk. It is
/// worth nothing without a capability for the group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// What it says.
    pub terms: Terms,
    /// The first bytes of HMAC-SHA-256.
    pub mac: [u8; Self::MAC_LEN],
}

impl Terms {
    const LEN: usize = 4 + 4 + 4 + GroupTag::LEN + 8;
}

impl Binding {
    /// Bytes of the MAC.
    pub const MAC_LEN: usize = 16;
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = Terms::LEN + Self::MAC_LEN;
}

impl DriveKey {
    /// Binds a chunk to a group.
    #[must_use]
    pub fn bind(&self, group: GroupTag, chunk: ChunkRef, terms: Terms) -> Binding {
        let digest = mac(self.bytes(), &[PURPOSE, &group.0, &terms.to_bytes(), &chunk.to_bytes()]);
        Binding { terms, mac: std::array::from_fn(|at| digest[at]) }
    }

    /// Whether a chunk is bound to a group, and a range of it is among what may be read. Whether the binding was revoked is to be
    /// checked beside.
    ///
    /// # Errors
    /// [`Refusal::OtherObject`] for a MAC that is not of these terms, this chunk, this group and this key;
    /// [`Refusal::OutOfRange`].
    pub fn check_binding(
        &self,
        group: GroupTag,
        chunk: ChunkRef,
        binding: &Binding,
        range: &Range<u32>,
    ) -> Result<(), Refusal> {
        let terms = &binding.terms;
        if !bool::from(self.bind(group, chunk, *terms).mac.ct_eq(&binding.mac)) {
            return Err(Refusal::OtherObject);
        }
        let is_inside = terms.start <= range.start && range.start <= range.end && range.end <= terms.end;
        if is_inside { Ok(()) } else { Err(Refusal::OutOfRange) }
    }
}

/// Distinguishes a binding from other MACs.
const PURPOSE: &[u8; 16] = b"afs-data-chunk-1";

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binding").field("terms", &self.terms).finish_non_exhaustive()
    }
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

impl Encode for Binding {
    fn encode(&self, out: &mut Vec<u8>) {
        self.terms.encode(out);
        out.extend_from_slice(&self.mac);
    }
}

impl Decode for Binding {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { terms: Decode::decode(r)?, mac: *r.array()? })
    }
}
