//! Code of requests for chunks on the wire: a number, and what each has (docs/protocol/data-path.md 4).

use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};

use super::chunk_fields::{put_chunk, put_id, put_many, put_read, take_chunk, take_id, take_many, take_read};
use super::chunk_request::{ChunkRequest, KeyBytes};
use crate::capability::Secret;

impl ChunkRequest {
    /// Its number on the wire. 10, 14 and 17 to 19 are not used.
    fn number(&self) -> u32 {
        match self {
            Self::Begin { .. } => 1,
            Self::Write { .. } => 2,
            Self::Read { .. } => 3,
            Self::Sync { .. } => 4,
            Self::Discard { .. } => 5,
            Self::Ranges { .. } => 6,
            Self::Sweep { .. } => 7,
            Self::Status => 8,
            Self::Adopt { .. } => 9,
            Self::Revoke { .. } => 11,
            Self::RevokeAll => 12,
            Self::Stage { .. } => 13,
            Self::Forget => 15,
            Self::Claim { .. } => 16,
            Self::Deliver { .. } => 20,
            Self::Receive { .. } => 21,
            Self::Collect { .. } => 22,
            Self::Send { .. } => 23,
            Self::ReadListed { .. } => 24,
        }
    }
}

impl Encode for ChunkRequest {
    fn encode(&self, out: &mut Vec<u8>) {
        self.number().encode(out);
        match self {
            Self::Status | Self::RevokeAll | Self::Forget => {}
            Self::Begin { after: id } | Self::Sync { oldest: id } => put_id(*id, out),
            Self::Write { length } | Self::Stage { length } => length.encode(out),
            Self::Discard { chunks } => put_many(chunks, put_chunk, out),
            Self::Revoke { groups } => put_many(groups, Encode::encode, out),
            Self::Read { chunk, start, end, credit } => put_read(chunk, [*start, *end, *credit], out),
            Self::ReadListed { chunk, start, end, credit, listed } => {
                put_read(chunk, [*start, *end, *credit], out);
                listed.encode(out);
            }
            Self::Receive { transfer, chunk, start, end, credit } => {
                transfer.encode(out);
                put_read(chunk, [*start, *end, *credit], out);
            }
            Self::Ranges { before, credit } => {
                put_id(*before, out);
                credit.encode(out);
            }
            Self::Sweep { first, last, live } => {
                [first, last].into_iter().for_each(|id| put_id(*id, out));
                live.encode(out);
            }
            Self::Adopt { epoch, key } => {
                epoch.encode(out);
                out.extend_from_slice(key.0.expose());
            }
            Self::Claim { claim, tag, count } => {
                claim.encode(out);
                tag.encode(out);
                count.encode(out);
            }
            Self::Deliver { group, transfer, chunk, terms } => {
                group.encode(out);
                transfer.encode(out);
                put_chunk(chunk, out);
                terms.encode(out);
            }
            Self::Collect { holder, tag, transfer, content } => {
                holder.encode(out);
                tag.encode(out);
                transfer.encode(out);
                content.encode(out);
            }
            Self::Send { transfer, content } => {
                transfer.encode(out);
                content.encode(out);
            }
        }
    }
}

impl Decode for ChunkRequest {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = r.u32()?;
        let request = match number {
            1..=9 => of_file_server(number, r)?,
            _ => of_either(number, r)?,
        };
        let wrong = DecodeError::BadValue { what: "numbers of a request for chunks", value: number };
        if request.is_valid() { Ok(request) } else { Err(wrong) }
    }
}

/// The requests of file servers for their chunks.
fn of_file_server(number: u32, r: &mut Reader<'_>) -> Result<ChunkRequest, DecodeError> {
    Ok(match number {
        1 => ChunkRequest::Begin { after: take_id(r)? },
        2 => ChunkRequest::Write { length: r.u32()? },
        3 => {
            let (chunk, [start, end, credit]) = take_read(r)?;
            ChunkRequest::Read { chunk, start, end, credit }
        }
        4 => ChunkRequest::Sync { oldest: take_id(r)? },
        5 => ChunkRequest::Discard { chunks: take_many(r, take_chunk)? },
        6 => ChunkRequest::Ranges { before: take_id(r)?, credit: r.u32()? },
        7 => ChunkRequest::Sweep { first: take_id(r)?, last: take_id(r)?, live: r.u32()? },
        8 => ChunkRequest::Status,
        9 => ChunkRequest::Adopt { epoch: Decode::decode(r)?, key: KeyBytes(Secret::new(*r.array()?)) },
        value => return Err(unknown(value)),
    })
}

/// The requests of clients that file servers send, and those for their sake.
fn of_either(number: u32, r: &mut Reader<'_>) -> Result<ChunkRequest, DecodeError> {
    Ok(match number {
        11 => ChunkRequest::Revoke { groups: take_many(r, Decode::decode)? },
        12 => ChunkRequest::RevokeAll,
        13 => ChunkRequest::Stage { length: r.u32()? },
        15 => ChunkRequest::Forget,
        16 => ChunkRequest::Claim { claim: Decode::decode(r)?, tag: Decode::decode(r)?, count: r.u32()? },
        20 => {
            let (group, transfer) = (Decode::decode(r)?, Decode::decode(r)?);
            ChunkRequest::Deliver { group, transfer, chunk: take_chunk(r)?, terms: Decode::decode(r)? }
        }
        21 => {
            let (transfer, (chunk, [start, end, credit])) = (Decode::decode(r)?, take_read(r)?);
            ChunkRequest::Receive { transfer, chunk, start, end, credit }
        }
        22 => {
            let (holder, tag) = (Decode::decode(r)?, Decode::decode(r)?);
            let (transfer, content) = (Decode::decode(r)?, Decode::decode(r)?);
            ChunkRequest::Collect { holder, tag, transfer, content }
        }
        23 => ChunkRequest::Send { transfer: Decode::decode(r)?, content: Decode::decode(r)? },
        24 => {
            let (chunk, [start, end, credit]) = take_read(r)?;
            ChunkRequest::ReadListed { chunk, start, end, credit, listed: Box::new(Decode::decode(r)?) }
        }
        value => return Err(unknown(value)),
    })
}

fn unknown(value: u32) -> DecodeError {
    DecodeError::BadValue { what: "request for chunks", value }
}
