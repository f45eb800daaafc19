//! Command, a call of our own: the file server has a drive move one chunk for a client, or signs an address by which an object store does.

use super::{ObjectAddress, SERVICE};
use crate::ids::{DataVersion, Fid};
use crate::xdr::{Decode, DecodeError, Encode, Fixed, Reader};

/// Longest time that an address in an object store is good for, in seconds.
pub const OBJECT_ADDRESS_LIFE_MAX: u32 = 60;

xdr_struct! {
    /// A part of a file that a drive is to send.
    pub struct PartToSend {
        /// The version that the file has.
        pub version: DataVersion,
        /// A position in the part.
        pub position: u64,
        /// The client's number for the transfer.
        pub transfer: Fixed<16>,
    }
}

xdr_struct! {
    /// A chunk of a store that a drive is to take.
    pub struct ChunkToTake {
        /// Number of the room.
        pub room: Fixed<16>,
        /// The client's number for the transfer.
        pub transfer: Fixed<16>,
        /// Bytes of the chunk.
        pub length: u32,
        /// Their CRC-32C.
        pub checksum: u32,
    }
}

xdr_struct! {
    /// A chunk that is to be fetched from an object store.
    pub struct ChunkToFetch {
        /// The version that the file has.
        pub version: DataVersion,
        /// A position in the part that the chunk is.
        pub position: u64,
        /// Id, length, checksum, in the form of `docs/protocol/data-path.md`.
        pub chunk: Fixed<24>,
    }
}

/// What is to be moved. On the wire: its number, then its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// 1: the drive sends the part in which a position is. Requires what FetchData requires.
    Send(PartToSend),
    /// 2: a drive of a room takes a chunk. Requires what StoreData requires.
    Take(ChunkToTake),
    /// 3: an object store sends the whole chunk in which a position is. Requires what FetchData requires.
    Address(ChunkToFetch),
}

impl Encode for Order {
    fn encode(&self, out: &mut Vec<u8>) {
        let (number, fields): (u32, &dyn Encode) = match self {
            Self::Send(part) => (1, part),
            Self::Take(chunk) => (2, chunk),
            Self::Address(chunk) => (3, chunk),
        };
        number.encode(out);
        fields.encode(out);
    }
}

impl Decode for Order {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match u32::decode(r)? {
            1 => Ok(Self::Send(Decode::decode(r)?)),
            2 => Ok(Self::Take(Decode::decode(r)?)),
            3 => Ok(Self::Address(Decode::decode(r)?)),
            value => Err(DecodeError::BadValue { what: "kind of command", value }),
        }
    }
}

calls! {
    service SERVICE;

    /// Has a drive move a chunk to or from the client, which waits there for the transfer of its number; or gives an address by which its
    /// holder fetches a chunk from an object store until it expires. Access is decided at each call. EOPNOTSUPP where the volume's transfers do not go that way; EAGAIN, VBUSY as for
    /// [`GetLayout`](super::GetLayout); ENXIO if the drive has no copy of the part that may be sent, or cannot be told, or the part is not
    /// this whole chunk, durable in this bucket. Of a chunk to take EINVAL for a length of 0 or beyond
    /// [`COMMIT_SLOT_LEN`](super::COMMIT_SLOT_LEN), ESTALE if this caller has no such room for the file.
    0x414E_443D "Command" Command {
        fid: Fid,
        /// The id of the drive or bucket.
        drive: Fixed<16>,
        order: Order,
    } -> CommandReply {
        /// An address of HTTP(S), or nothing. Its signature covers the header `Range` of the request, so that no other bytes can be read by it.
        address: ObjectAddress,
        /// First byte of the object that the request names in its range.
        start: u64,
        /// Bytes of the range: those of the chunk.
        length: u32,
        /// Seconds until the address expires, at most [`OBJECT_ADDRESS_LIFE_MAX`].
        seconds: u32,
    };
}
