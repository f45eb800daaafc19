//! Remote calls: service, opcode, arguments, reply.
//!
//! A request is the opcode followed by the arguments; a reply is the results in order and nothing else. Failure is an
//! Rx abort with an [`AbortCode`](crate::error::AbortCode). Source: `docs/protocol/rx.md` "14. XDR and rxgen
//! conventions".

use crate::xdr::{Decode, DecodeError, Encode, Reader};
use std::fmt::Debug;

id! {
    /// Rx service number, which with a UDP port is the destination of a connection.
    pub struct ServiceId(u16);
}

impl ServiceId {
    /// File service, UDP port 7000.
    pub const FILE: Self = Self(1);
    /// Callback service, which cache managers offer; the same number as [`Self::FILE`] on another port (7001).
    pub const CALLBACK: Self = Self(1);
    /// Overseer service, the same number once more on port 7007.
    pub const OVERSEER: Self = Self(1);
    /// Volume service, UDP port 7005.
    pub const VOLUME: Self = Self(4);
    /// Ubik's voting service, beside location (7003) and protection (7002).
    pub const UBIK_VOTE: Self = Self(50);
    /// Ubik's server-to-server service.
    pub const UBIK_DISK: Self = Self(51);
    /// Volume location service, UDP port 7003.
    pub const LOCATION: Self = Self(52);
    /// Protection service, UDP port 7002.
    pub const PROTECTION: Self = Self(73);
    /// Andrew's login service, beside protection (7002); `docs/protocol/login.md`.
    pub const LOGIN: Self = Self(61_002);
    /// Andrew's journal of operations, beside location (7003); `docs/protocol/operations-journal.md`.
    pub const OPERATIONS: Self = Self(61_003);
    /// Rx statistics, offered by OpenAFS beside every service.
    pub const RX_STATS: Self = Self(409);
}

id! {
    /// Number of a call within its service.
    pub struct Opcode(u32);
}

/// The arguments of one kind of call.
///
/// `Encode` and `Decode` cover the arguments only; [`encode_call`] puts the opcode before them. For calls that stream
/// bytes (see [`Streamed`]) the arguments are those before the bytes and the reply is the results after them.
pub trait Request: Encode + Decode + Debug + Send + Sync + 'static {
    /// The service of this call.
    const SERVICE: ServiceId;
    /// The call's number.
    const OPCODE: u32;
    /// The call's name in the protocol's documents.
    const NAME: &'static str;
    /// The results.
    type Reply: Encode + Decode + Debug + Send + Sync + 'static;
}

/// A call with raw bytes (no XDR, no padding) after its arguments or before its results.
///
/// Source: `docs/protocol/fileserver.md` "4. Data framing on the split calls".
pub trait Streamed: Request {
    /// Bytes of opcode and arguments together; all arguments of these calls have a fixed size.
    const HEAD_LEN: usize;
    /// Bytes of the count before the raw bytes of the reply: 4, 8, or 0 when the reply streams nothing or ends only
    /// with the call.
    const COUNT_LEN: usize;
}

/// No results: an empty reply reports success.
pub type Nothing = ();

/// Opcode and arguments in wire form.
pub fn encode_call<R: Request>(request: &R) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    R::OPCODE.encode(&mut out);
    request.encode(&mut out);
    out
}

/// Takes the opcode off the front of a request.
///
/// # Errors
/// [`DecodeError::Short`] when there are not even four bytes.
pub fn split_opcode(call: &[u8]) -> Result<(Opcode, &[u8]), DecodeError> {
    let mut reader = Reader::new(call);
    let opcode = Opcode::decode(&mut reader)?;
    Ok((opcode, reader.rest()))
}

/// Decodes the arguments that follow an opcode.
///
/// Bytes after the last argument are ignored, as by OpenAFS's servers: some clients send them.
///
/// # Errors
/// The error of the arguments' decoder; a server answers it with `RXGEN_SS_UNMARSHAL`.
pub fn decode_arguments<R: Request>(arguments: &[u8]) -> Result<R, DecodeError> {
    R::decode(&mut Reader::new(arguments))
}

/// Decodes a whole reply. Bytes after the last result are ignored, as in arguments.
///
/// # Errors
/// The error of the results' decoder; a client ends such a call with `RXGEN_CC_UNMARSHAL`.
pub fn decode_reply<R: Request>(reply: &[u8]) -> Result<R::Reply, DecodeError> {
    R::Reply::decode(&mut Reader::new(reply))
}

/// Finds an opcode's name in one of the services' tables, which are sorted by opcode.
pub fn opcode_name(table: &'static [(u32, &'static str)], opcode: Opcode) -> Option<&'static str> {
    table.binary_search_by_key(&opcode.0, |row| row.0).ok().and_then(|at| table.get(at)).map(|row| row.1)
}
