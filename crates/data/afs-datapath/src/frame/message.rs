//! All frames but those with bytes of files.

use std::fmt;

use afs_wire::ids::{DataVersion, Fid};
use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};
use bytes::Bytes;

use super::header::{HEADER_LEN, Header, Kind};
use super::{ChunkReply, ChunkRequest, Failure, FrameError, Goodbye, Hello, StoreDescription, Welcome};
use crate::capability::{ByteRange, Capability, Proof, TicketId};

/// Number of a request, chosen by the client: the first is 1, each is larger than the one before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RequestId(pub u32);

/// Number under which a client has presented a capability on a connection, smaller than the drive's limit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HandleNumber(pub u32);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Length of a stream whose length is not known before its end: that of [`ByteRange::ALL`].
pub const OPEN_END: u64 = ByteRange::ALL.len();

/// A frame without bytes of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// The client's first.
    Hello(Hello),
    /// The drive's first.
    Welcome(Welcome),
    /// The client may name a capability by a handle from now on. There is no reply: requests by a handle whose capability was
    /// refused fail with the refusal. A handle in use is given another capability.
    Present {
        /// The number.
        handle: HandleNumber,
        /// The arguments.
        capability: Capability,
        /// Proof of the secret.
        proof: Presented,
    },
    /// The client has no more use for a handle. Requests by it continue.
    Withdraw {
        /// The number.
        handle: HandleNumber,
    },
    /// The client wants bytes of a file, of one version. The drive replies with Announce and then the bytes, or with Failed.
    Read {
        /// Number of the request.
        request: RequestId,
        /// The capability.
        handle: HandleNumber,
        /// The file.
        fid: Fid,
        /// The bytes; fewer where the file ends before.
        range: ByteRange,
        /// The version.
        version: DataVersion,
        /// Bytes that the drive may send before the client gives more credit.
        credit: u32,
    },
    /// The drive has the bytes that a request wants. Of a stream it is [`OPEN_END`] at first; behind the last byte of a stream
    /// the end that sends the bytes, drive or client, announces how many there were.
    Announce {
        /// The request.
        request: RequestId,
        /// Bytes that follow, at most as many as were asked for.
        length: u64,
        /// Length of the file in that version.
        file_length: u64,
    },
    /// The receiver of a request's bytes will take more of them.
    Credit {
        /// The request.
        request: RequestId,
        /// Bytes, in addition to those before.
        bytes: u32,
    },
    /// The client gives bytes to a drive. They follow in Data frames, as credit permits; the drive replies with Stored when all of
    /// them are durable, or with Failed at any time.
    Store {
        /// Number of the request.
        request: RequestId,
        /// The capability.
        handle: HandleNumber,
        /// File and ranges.
        description: StoreDescription,
    },
    /// All bytes of a store are durable.
    Stored {
        /// The request.
        request: RequestId,
        /// What CommitStore takes.
        ticket: TicketId,
    },
    /// The client wants something done with chunks. Bytes follow, or come back, as the request says.
    Perform {
        /// Number of the request.
        request: RequestId,
        /// The capability.
        handle: HandleNumber,
        /// What is to be done.
        what: ChunkRequest,
    },
    /// A request for chunks is done. One whose reply is bytes has Announce instead.
    Performed {
        /// The request.
        request: RequestId,
        /// The outcome.
        reply: ChunkReply,
    },
    /// A request has ended without effect.
    Failed {
        /// The request.
        request: RequestId,
        /// Why.
        failure: Failure,
    },
    /// The client has no more use for a request. There is no reply.
    Cancel {
        /// The request.
        request: RequestId,
    },
    /// The sender has had nothing else to send for a while.
    Alive,
    /// The sender's last frame.
    Goodbye(Goodbye),
}

/// A proof in a message: compared as bytes in tests only, shown by nobody.
#[derive(Clone, Copy, Debug)]
pub struct Presented(pub Proof);

impl PartialEq for Presented {
    fn eq(&self, other: &Self) -> bool {
        self.0.0 == other.0.0
    }
}

impl Eq for Presented {}

impl Message {
    /// The whole frame.
    #[must_use]
    pub fn to_frame(&self) -> Bytes {
        let (kind, request) = self.kind();
        let mut body = vec![0; HEADER_LEN];
        self.encode_body(&mut body);
        let mut header = Vec::with_capacity(HEADER_LEN);
        Header { length: body.len() - HEADER_LEN, kind, request }.encode(&mut header);
        body[..HEADER_LEN].copy_from_slice(&header);
        body.into()
    }

    fn kind(&self) -> (Kind, RequestId) {
        let none = RequestId::default();
        match self {
            Self::Hello(_) => (Kind::Hello, none),
            Self::Welcome(_) => (Kind::Welcome, none),
            Self::Present { .. } => (Kind::Present, none),
            Self::Withdraw { .. } => (Kind::Withdraw, none),
            Self::Read { request, .. } => (Kind::Read, *request),
            Self::Announce { request, .. } => (Kind::Announce, *request),
            Self::Credit { request, .. } => (Kind::Credit, *request),
            Self::Store { request, .. } => (Kind::Store, *request),
            Self::Stored { request, .. } => (Kind::Stored, *request),
            Self::Perform { request, .. } => (Kind::Perform, *request),
            Self::Performed { request, .. } => (Kind::Performed, *request),
            Self::Failed { request, .. } => (Kind::Failed, *request),
            Self::Cancel { request } => (Kind::Cancel, *request),
            Self::Alive => (Kind::Alive, none),
            Self::Goodbye(_) => (Kind::Goodbye, none),
        }
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => hello.encode(out),
            Self::Welcome(welcome) => welcome.encode(out),
            Self::Present { handle, capability, proof } => {
                handle.0.encode(out);
                capability.encode(out);
                out.extend_from_slice(&proof.0.0);
            }
            Self::Withdraw { handle } => handle.0.encode(out),
            Self::Read { handle, fid, range, version, credit, .. } => {
                handle.0.encode(out);
                fid.encode(out);
                range.encode(out);
                version.encode(out);
                credit.encode(out);
            }
            Self::Announce { length, file_length, .. } => {
                length.encode(out);
                file_length.encode(out);
            }
            Self::Credit { bytes, .. } => bytes.encode(out),
            Self::Store { handle, description, .. } => {
                handle.0.encode(out);
                description.encode(out);
            }
            Self::Stored { ticket, .. } => ticket.encode(out),
            Self::Perform { handle, what, .. } => {
                handle.0.encode(out);
                what.encode(out);
            }
            Self::Performed { reply, .. } => reply.encode(out),
            Self::Failed { failure, .. } => failure.encode(out),
            Self::Goodbye(goodbye) => goodbye.encode(out),
            Self::Cancel { .. } | Self::Alive => {}
        }
    }

    /// The message of a body, which is exactly one message.
    pub(super) fn decode(header: Header, body: &[u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(body);
        let message = Self::decode_body(header, &mut reader)?;
        reader.finish()?;
        Ok(message)
    }

    fn decode_body(header: Header, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let request = header.request;
        Ok(match header.kind {
            Kind::Hello => Self::Hello(Decode::decode(r)?),
            Kind::Welcome => Self::Welcome(Decode::decode(r)?),
            Kind::Present => Self::Present {
                handle: HandleNumber(r.u32()?),
                capability: Decode::decode(r)?,
                proof: Presented(Proof(*r.array()?)),
            },
            Kind::Withdraw => Self::Withdraw { handle: HandleNumber(r.u32()?) },
            Kind::Read => Self::Read {
                request,
                handle: HandleNumber(r.u32()?),
                fid: Decode::decode(r)?,
                range: Decode::decode(r)?,
                version: Decode::decode(r)?,
                credit: r.u32()?,
            },
            Kind::Announce => Self::Announce { request, length: r.u64()?, file_length: r.u64()? },
            Kind::Credit => Self::Credit { request, bytes: r.u32()? },
            Kind::Store => {
                Self::Store { request, handle: HandleNumber(r.u32()?), description: Decode::decode(r)? }
            }
            Kind::Stored => Self::Stored { request, ticket: Decode::decode(r)? },
            Kind::Perform => {
                Self::Perform { request, handle: HandleNumber(r.u32()?), what: Decode::decode(r)? }
            }
            Kind::Performed => Self::Performed { request, reply: Decode::decode(r)? },
            Kind::Failed => Self::Failed { request, failure: Decode::decode(r)? },
            Kind::Cancel => Self::Cancel { request },
            Kind::Alive => Self::Alive,
            Kind::Goodbye => Self::Goodbye(Decode::decode(r)?),
            // The decoder takes bytes of files before it comes here.
            Kind::Data => return Err(DecodeError::BadValue { what: "message", value: Kind::Data as u32 }),
        })
    }
}
