//! The public arguments of a capability.

use afs_wire::ids::Fid;
use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};

use super::{
    Access, ByteRange, DriveId, Generation, Group, GroupTag, HolderId, KeyEpoch, Refusal, StagingTag,
    StoreNumber,
};

/// What a capability permits, where, to whom, and for how long. No secret: the client presents it in the clear.
///
/// The wire form has [`Capability::WIRE_LEN`] bytes and is the only one: what is decoded encodes to the same bytes, so that the
/// MAC may be taken over either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Capability {
    /// The drive that honours it.
    pub drive: DriveId,
    /// The key of the drive by which it was sealed.
    pub epoch: KeyEpoch,
    /// The objects that it covers.
    pub group: Group,
    /// What it permits.
    pub access: Access,
    /// The part of each object that it covers.
    pub range: ByteRange,
    /// When it ends: seconds since 1970 on the wall clock of the drive. It is honoured before, and no more from then on.
    pub expires: u64,
    /// The generation of the group when it was sealed.
    pub generation: Generation,
    /// To whom it was given.
    pub holder: HolderId,
}

impl Capability {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 16 + 4 + 16 + 4 + 16 + 8 + 8 + 16;

    /// Whether it permits an access to bytes of a file, as far as its arguments tell ([`Group::may_cover`]).
    ///
    /// # Errors
    /// [`Refusal::NotAllowed`], [`Refusal::OtherObject`], [`Refusal::OutOfRange`]; the first of them that holds.
    pub fn permits(&self, access: Access, fid: Fid, range: ByteRange) -> Result<(), Refusal> {
        if !self.access.permits(access) {
            return Err(Refusal::NotAllowed);
        }
        if !self.group.may_cover(fid) {
            return Err(Refusal::OtherObject);
        }
        if !self.range.contains(range) {
            return Err(Refusal::OutOfRange);
        }
        Ok(())
    }

    /// The store whose chunks it permits to manage.
    ///
    /// # Errors
    /// [`Refusal::NotAllowed`], [`Refusal::OtherObject`].
    pub fn permits_chunks(&self) -> Result<StoreNumber, Refusal> {
        if !self.access.permits(Access::MANAGE) {
            return Err(Refusal::NotAllowed);
        }
        match self.group {
            Group::Chunks(store) => Ok(store),
            _ => Err(Refusal::OtherObject),
        }
    }

    /// The tag to which chunks are bound that it permits to read, for a range of a chunk.
    ///
    /// # Errors
    /// [`Refusal::NotAllowed`], [`Refusal::OtherObject`], [`Refusal::OutOfRange`]; the first of them that holds.
    pub fn permits_bound(&self, start: u32, end: u32) -> Result<GroupTag, Refusal> {
        if !self.access.permits(Access::READ) {
            return Err(Refusal::NotAllowed);
        }
        let Group::Tagged(tag) = self.group else { return Err(Refusal::OtherObject) };
        let is_inside =
            ByteRange::new(start.into(), end.into()).is_some_and(|range| self.range.contains(range));
        if is_inside { Ok(tag) } else { Err(Refusal::OutOfRange) }
    }

    /// The store in which it permits to stage chunks, and the tag under which. Its range says how many bytes together.
    ///
    /// # Errors
    /// [`Refusal::NotAllowed`], [`Refusal::OtherObject`].
    pub fn permits_staging(&self) -> Result<(StoreNumber, StagingTag), Refusal> {
        if !self.access.permits(Access::WRITE) {
            return Err(Refusal::NotAllowed);
        }
        match self.group {
            Group::Staged(store, tag) => Ok((store, tag)),
            _ => Err(Refusal::OtherObject),
        }
    }

    /// Whether it permits to stage a chunk that is commanded, or one that is not: a room is for either alone.
    ///
    /// # Errors
    /// As [`Capability::permits_staging`].
    pub fn permits_chunk(&self, is_commanded: bool) -> Result<(), Refusal> {
        self.permits_staging()?;
        if self.access.permits(Access::COMMANDED) == is_commanded { Ok(()) } else { Err(Refusal::NotAllowed) }
    }
}

impl Encode for Capability {
    fn encode(&self, out: &mut Vec<u8>) {
        self.drive.encode(out);
        self.epoch.encode(out);
        self.group.encode(out);
        self.access.encode(out);
        self.range.encode(out);
        self.expires.encode(out);
        self.generation.encode(out);
        self.holder.encode(out);
    }
}

impl Decode for Capability {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            drive: Decode::decode(r)?,
            epoch: Decode::decode(r)?,
            group: Decode::decode(r)?,
            access: Decode::decode(r)?,
            range: Decode::decode(r)?,
            expires: Decode::decode(r)?,
            generation: Decode::decode(r)?,
            holder: Decode::decode(r)?,
        })
    }
}
