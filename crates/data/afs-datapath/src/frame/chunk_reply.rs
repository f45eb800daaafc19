//! Replies to requests for chunks.

use afs_drive::{ChunkId, ChunkRef, Usage};
use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};

use super::chunk_fields::{put_chunk, put_id, take_chunk, take_id};
use crate::capability::Generation;

/// How a request for chunks ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChunkReply {
    /// The store is open.
    Begun {
        /// Number of this run of the drive: each start has another one.
        run: u64,
        /// Greater than the ids of all chunks so far, and not greater than those of later ones.
        mark: ChunkId,
        /// Space on the drive.
        usage: Usage,
    },
    /// The chunk is written, and not durable yet.
    Written {
        /// The chunk.
        chunk: ChunkRef,
        /// Space on the drive.
        usage: Usage,
    },
    /// It is done.
    Done,
    /// A range was swept.
    Swept {
        /// Whether nothing is left of it.
        removed: bool,
        /// Live chunks that are not on the drive.
        missing: u32,
        /// One of them, if there are any.
        one_missing: ChunkId,
    },
    /// How the drive is.
    Status(DriveStatus),
    /// Groups were revoked.
    Revoked {
        /// The latest generation of any group from now on.
        latest: Generation,
    },
}

/// How a drive is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DriveStatus {
    /// Number of this run.
    pub run: u64,
    /// Space.
    pub usage: Usage,
    /// Chunks written in this run.
    pub written: u64,
    /// Reads of chunks in this run.
    pub read: u64,
    /// Chunks that were found damaged in this run.
    pub damaged: u64,
}

fn put_usage(usage: Usage, out: &mut Vec<u8>) {
    usage.free.encode(out);
    usage.total.encode(out);
}

fn take_usage(r: &mut Reader<'_>) -> Result<Usage, DecodeError> {
    Ok(Usage { free: r.u64()?, total: r.u64()? })
}

impl Encode for ChunkReply {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Begun { run, mark, usage } => {
                1u32.encode(out);
                run.encode(out);
                put_id(*mark, out);
                put_usage(*usage, out);
            }
            Self::Written { chunk, usage } => {
                2u32.encode(out);
                put_chunk(chunk, out);
                put_usage(*usage, out);
            }
            Self::Done => 3u32.encode(out),
            Self::Swept { removed, missing, one_missing } => {
                [4, u32::from(*removed), *missing].iter().for_each(|word| word.encode(out));
                put_id(*one_missing, out);
            }
            Self::Status(status) => {
                5u32.encode(out);
                status.run.encode(out);
                put_usage(status.usage, out);
                [status.written, status.read, status.damaged].iter().for_each(|count| count.encode(out));
            }
            Self::Revoked { latest } => {
                6u32.encode(out);
                latest.encode(out);
            }
        }
    }
}

impl Decode for ChunkReply {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u32()? {
            1 => Ok(Self::Begun { run: r.u64()?, mark: take_id(r)?, usage: take_usage(r)? }),
            2 => Ok(Self::Written { chunk: take_chunk(r)?, usage: take_usage(r)? }),
            3 => Ok(Self::Done),
            4 => Ok(Self::Swept { removed: flag(r)?, missing: r.u32()?, one_missing: take_id(r)? }),
            5 => Ok(Self::Status(DriveStatus {
                run: r.u64()?,
                usage: take_usage(r)?,
                written: r.u64()?,
                read: r.u64()?,
                damaged: r.u64()?,
            })),
            6 => Ok(Self::Revoked { latest: Decode::decode(r)? }),
            value => Err(DecodeError::BadValue { what: "reply to a request for chunks", value }),
        }
    }
}

fn flag(r: &mut Reader<'_>) -> Result<bool, DecodeError> {
    match r.u32()? {
        0 => Ok(false),
        1 => Ok(true),
        value => Err(DecodeError::BadValue { what: "whether a range was removed", value }),
    }
}
