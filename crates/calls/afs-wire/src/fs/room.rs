//! Stores of clients at drives: a room in which a client stages chunks, and the commit that makes them a file's.

use super::{LAYOUT_COPIES_MAX, LAYOUT_DRIVES_MAX, LayoutDrive, SERVICE, SetStatus, StatusReply};
use crate::ids::{DataVersion, Fid};
use crate::rpc::{Nothing, Streamed};
use crate::xdr::{BoundedVec, Fixed};

/// Most bytes of one room: as many as [`COMMIT_PARTS_MAX`] chunks have.
pub const ROOM_BYTES_MAX: u64 = 4 << 30;
/// Most parts of one [`Commit`].
pub const COMMIT_PARTS_MAX: usize = 4096;
/// Most places of one [`Commit`]: each part at as many drives as a room has.
pub const COMMIT_PLACES_MAX: usize = COMMIT_PARTS_MAX * LAYOUT_DRIVES_MAX;
/// The drives for the chunks of a slot, as places in the list of a room's drives.
pub type RoomRound = BoundedVec<u32, LAYOUT_COPIES_MAX>;
/// Most parts within one [`COMMIT_SLOT_LEN`] of a file.
pub const COMMIT_SLOT_PARTS_MAX: usize = 16;
/// Bytes of a file within which the chunk of one part lies, from a multiple of it on.
pub const COMMIT_SLOT_LEN: u64 = 1 << 20;

xdr_struct! {
    /// A chunk that has the bytes of a part of a file.
    pub struct CommitPlace {
        /// First byte of the part. Places with the same one are of one part, each at another drive.
        pub position: u64,
        /// Its drive: a place in the commit's list of drives.
        pub drive: u32,
        /// Id, length, checksum, in the form of `docs/protocol/data-path.md`.
        pub chunk: Fixed<24>,
    }
}

calls! {
    service SERVICE;

    /// Gives a room back in which nothing will be committed: the quota and the space that it has reserved are free when the reply
    /// leaves. ESTALE if the caller has no such room.
    0x414E_442C "EndRoom" EndRoom { room: Fixed<16> } -> Nothing;

    /// Asks for a room: the drives at which the file's new data are to be, with a capability for each by which the client stages the bytes
    /// of a store there. Requires what StoreData requires, quota included; the commit decides again. Where the file server commands the
    /// volume's transfers the capabilities say so, and each chunk is to be commanded by [`Command`](super::Command). EOPNOTSUPP where the volume's bytes do
    /// not travel that way, or a drive for new data cannot be used now; VBUSY where too many stores are in progress.
    0x414E_4432 "GetRoom" GetRoom {
        fid: Fid,
        /// Bytes that are to be staged at each drive at most, 1 to [`ROOM_BYTES_MAX`].
        bytes: u64,
        /// Length of the file after the store.
        length: u64,
    } -> GetRoomReply {
        /// The drives, each with a capability to stage so many bytes there.
        drives: BoundedVec<LayoutDrive, LAYOUT_DRIVES_MAX>,
        /// The chunk of slot s of the file, which has [`COMMIT_SLOT_LEN`] bytes, is to be at all drives of the round s modulo the number
        /// of rounds, the first of which is its own.
        rounds: BoundedVec<RoomRound, LAYOUT_DRIVES_MAX>,
        /// Number of the room, which the commit names.
        room: Fixed<16>,
    };

    /// Makes a file's what was staged: the bytes that the file server's own drive has under a ticket, or chunks in a room. One change, from
    /// which on ticket or room is used up. Without drives and places it is a ticket: ESTALE for one that has expired, was used, belongs to
    /// another client or user, or to another file.
    ///
    /// The chunks of a room: the ids of `drives` drives follow the arguments, 16 bytes each, and after them `places`
    /// structures [`CommitPlace`], in ascending order of their parts and without overlap, those of one part in the order of its round; a part
    /// is within one [`COMMIT_SLOT_LEN`] of the file, with at most [`COMMIT_SLOT_PARTS_MAX`] in each. ESTALE if not all of them are staged in
    /// this room, which is this caller's and for this file, or if a part is not at all drives at which the volume's placement has it, but for
    /// those that are away; EAGAIN if the file has not the expected version. Chunks that were claimed are freed if the change is not made.
    /// Requires the rights that StoreData does.
    0x414E_443E "Commit" Commit {
        fid: Fid,
        status: SetStatus,
        /// The version that the changes are based on, or [`ANY_VERSION`](super::ANY_VERSION).
        expected: DataVersion,
        /// Length to which a longer file is truncated before the chunks become its.
        file_length: u64,
        /// Length to which a shorter file is extended with zeros after that.
        grown_to: u64,
        /// The ticket, or the number of the room.
        staged: Fixed<16>,
        /// How many drives follow, 1 to [`LAYOUT_DRIVES_MAX`] of a room.
        drives: u32,
        /// How many places follow, 1 to [`COMMIT_PLACES_MAX`] of a room.
        places: u32,
    } -> StatusReply;
}

impl CommitPlace {
    /// Bytes of one in wire form.
    pub const WIRE_LEN: usize = 8 + 4 + 24;
}

impl Streamed for Commit {
    const HEAD_LEN: usize = 4 + Fid::WIRE_LEN + SetStatus::WIRE_LEN + 8 + 8 + 8 + 16 + 4 + 4;
    const COUNT_LEN: usize = 0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::encode_call;
    use crate::xdr::{Decode, DecodeError, Encode};

    #[test]
    fn head_and_tables_have_the_lengths_they_say() {
        let commit = Commit {
            fid: Fid::default(),
            status: SetStatus::default(),
            expected: DataVersion(1),
            file_length: 2,
            grown_to: 3,
            staged: Fixed([5; 16]),
            drives: 2,
            places: 7,
        };
        assert_eq!(encode_call(&commit).len(), Commit::HEAD_LEN);
        assert_eq!(Commit::from_bytes(&commit.to_bytes()), Ok(commit));
        let place = CommitPlace { position: 1, drive: 1, chunk: Fixed([2; 24]) };
        let bytes = place.to_bytes();
        assert_eq!(bytes.len(), CommitPlace::WIRE_LEN);
        assert_eq!(CommitPlace::from_bytes(&bytes), Ok(place));
        assert!(matches!(CommitPlace::from_bytes(&bytes[1..]), Err(DecodeError::Short { .. })));
    }
}
