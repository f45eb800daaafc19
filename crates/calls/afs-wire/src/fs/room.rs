//! Stores of clients at drives: a room in which a client stages chunks, and the commit that makes them a file's.

use super::{LAYOUT_COPIES_MAX, LAYOUT_DRIVES_MAX, LayoutDrive, SERVICE, SetStatus, StatusReply};
use crate::ids::{DataVersion, Fid};
use crate::rpc::{Nothing, Streamed};
use crate::xdr::{BoundedVec, Fixed};

/// Most bytes of one room: as many as [`COMMIT_PARTS_MAX`] chunks have.
pub const ROOM_BYTES_MAX: u64 = 4 << 30;
/// Most parts of one [`CommitRoom`].
pub const COMMIT_PARTS_MAX: usize = 4096;
/// Most places of one [`CommitRoom`]: each part at as many drives as a room has.
pub const COMMIT_PLACES_MAX: usize = COMMIT_PARTS_MAX * LAYOUT_DRIVES_MAX;
/// The drives for the chunks of a slot, as places in the list of a room's drives.
pub type RoomRound = BoundedVec<u32, LAYOUT_COPIES_MAX>;
/// Most parts within one [`COMMIT_SLOT_LEN`] of a file.
pub const COMMIT_SLOT_PARTS_MAX: usize = 16;
/// Bytes of a file within which the chunk of one part lies, from a multiple of it on.
pub const COMMIT_SLOT_LEN: u64 = 1 << 20;

xdr_struct! {
    /// A drive of a commit.
    pub struct CommitDrive {
        /// Its id.
        pub drive: Fixed<16>,
        /// Its run, as it told with the receipts.
        pub run: u64,
    }
}

xdr_struct! {
    /// A chunk that has the bytes of a part of a file.
    pub struct CommitPlace {
        /// First byte of the part. Places with the same one are of one part, each at another drive.
        pub position: u64,
        /// Its drive: a place in the commit's list of drives.
        pub drive: u32,
        /// Id, length, checksum, in the form of `docs/protocol/data-path.md`.
        pub chunk: Fixed<24>,
        /// The drive's receipt for it.
        pub receipt: Fixed<16>,
    }
}

calls! {
    service SERVICE;

    /// Gives a room back in which nothing will be committed: the quota and the space that it has reserved are free when the reply
    /// leaves. ESTALE if the caller has no such room.
    0x414E_442C "EndRoom" EndRoom { room: Fixed<16> } -> Nothing;

    /// Asks for a room: the drives at which the file's new data are to be, with a capability for each by which the client stages the bytes
    /// of a store there. Requires what StoreData requires, quota included; the commit decides again. Where the file server commands the
    /// volume's transfers the capabilities say so, and each chunk is to be commanded by [`Collect`]. EOPNOTSUPP where the volume's bytes do
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

    /// Has a drive of a room take a chunk from the client, which waits there for the transfer of this number. Requires what StoreData
    /// requires. EOPNOTSUPP where the volume's transfers are not commanded; EINVAL for a length of 0 or beyond [`COMMIT_SLOT_LEN`];
    /// ESTALE if this caller has no such room for the file; ENXIO if there is no such drive, or it cannot be told.
    0x414E_4433 "Collect" Collect {
        fid: Fid,
        /// Number of the room.
        room: Fixed<16>,
        /// The drive's id.
        drive: Fixed<16>,
        /// The client's number for the transfer.
        transfer: Fixed<16>,
        /// Bytes of the chunk.
        length: u32,
        /// Their CRC-32C.
        checksum: u32,
    } -> Nothing;

    /// Makes staged chunks a file's, in one change. `drives` structures [`CommitDrive`] follow the arguments, and after them `places`
    /// structures [`CommitPlace`], in ascending order of their parts and without overlap, those of one part in the order of its round; a part
    /// is within one [`COMMIT_SLOT_LEN`] of the file, with at most [`COMMIT_SLOT_PARTS_MAX`] in each. ESTALE if not all of them are staged in
    /// this room, which is this caller's and for this file, with a receipt for each that is right, or if a part is not at all drives at which
    /// the volume's placement has it, but for those that are away; EAGAIN if the file has not the expected version. Chunks that were claimed
    /// are freed if the change is not made. Requires the rights that StoreData does.
    0x414E_442F "CommitRoom" CommitRoom {
        fid: Fid,
        status: SetStatus,
        /// The version that the changes are based on, or [`ANY_VERSION`](super::ANY_VERSION).
        expected: DataVersion,
        /// Length to which a longer file is truncated before the chunks become its.
        file_length: u64,
        /// Length to which a shorter file is extended with zeros after that.
        grown_to: u64,
        /// Number of the room.
        room: Fixed<16>,
        /// How many drives follow, 1 to [`LAYOUT_DRIVES_MAX`].
        drives: u32,
        /// How many places follow, 1 to [`COMMIT_PLACES_MAX`].
        places: u32,
    } -> StatusReply;
}

impl CommitDrive {
    /// Bytes of one in wire form.
    pub const WIRE_LEN: usize = 16 + 8;
}

impl CommitPlace {
    /// Bytes of one in wire form.
    pub const WIRE_LEN: usize = 8 + 4 + 24 + 16;
}

impl Streamed for CommitRoom {
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
        let commit = CommitRoom {
            fid: Fid::default(),
            status: SetStatus::default(),
            expected: DataVersion(1),
            file_length: 2,
            grown_to: 3,
            room: Fixed([5; 16]),
            drives: 2,
            places: 7,
        };
        assert_eq!(encode_call(&commit).len(), CommitRoom::HEAD_LEN);
        assert_eq!(CommitRoom::from_bytes(&commit.to_bytes()), Ok(commit));
        let drive = CommitDrive { drive: Fixed([4; 16]), run: 6 };
        assert_eq!(drive.to_bytes().len(), CommitDrive::WIRE_LEN);
        let place = CommitPlace { position: 1, drive: 1, chunk: Fixed([2; 24]), receipt: Fixed([3; 16]) };
        let bytes = place.to_bytes();
        assert_eq!(bytes.len(), CommitPlace::WIRE_LEN);
        assert_eq!(CommitPlace::from_bytes(&bytes), Ok(place));
        assert!(matches!(CommitPlace::from_bytes(&bytes[1..]), Err(DecodeError::Short { .. })));
    }
}
