//! Header of a frame: length of the body, kind, request.

use afs_wire::xdr::Encode;
use bytes::Bytes;

use super::{FrameError, RequestId};

/// Bytes of a header.
pub const HEADER_LEN: usize = 12;
/// Most bytes of a file in one frame.
pub const DATA_MAX: usize = 256 << 10;
/// Most bytes of the body of any other frame: a store with [`RANGES_MAX`](super::RANGES_MAX) ranges.
pub const MESSAGE_MAX: usize = super::store::WIRE_LEN_MAX + 4;

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Kind {
    Hello = 1,
    Welcome = 2,
    Present = 3,
    Withdraw = 4,
    Read = 5,
    Announce = 6,
    Data = 7,
    Credit = 8,
    Store = 9,
    Stored = 10,
    Failed = 11,
    Cancel = 12,
    Alive = 13,
    Goodbye = 14,
    Perform = 32,
    Performed = 33,
}

const KINDS: [Kind; 16] = [
    Kind::Hello,
    Kind::Welcome,
    Kind::Present,
    Kind::Withdraw,
    Kind::Read,
    Kind::Announce,
    Kind::Data,
    Kind::Credit,
    Kind::Store,
    Kind::Stored,
    Kind::Failed,
    Kind::Cancel,
    Kind::Alive,
    Kind::Goodbye,
    Kind::Perform,
    Kind::Performed,
];

impl Kind {
    /// Whether a frame of this kind belongs to a request.
    fn has_request(self) -> bool {
        match self {
            Self::Read | Self::Announce | Self::Data | Self::Credit => true,
            Self::Store | Self::Stored | Self::Failed | Self::Cancel => true,
            Self::Perform | Self::Performed => true,
            Self::Hello | Self::Welcome | Self::Present | Self::Withdraw | Self::Alive | Self::Goodbye => {
                false
            }
        }
    }
}

/// The three words before a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub length: usize,
    pub kind: Kind,
    pub request: RequestId,
}

impl Header {
    pub fn encode(self, out: &mut Vec<u8>) {
        (self.length as u32).encode(out);
        (self.kind as u32).encode(out);
        self.request.0.encode(out);
    }

    /// A header with a kind that exists, a length that this kind may have, and a request if this kind belongs to one.
    pub fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Self, FrameError> {
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (length, kind, request) = (word(0), word(4), RequestId(word(8)));
        let kind = KINDS.into_iter().find(|known| *known as u32 == kind).ok_or(FrameError::Kind(kind))?;
        if kind.has_request() != (request != RequestId::default()) {
            return Err(FrameError::Request(request));
        }
        let most = if kind == Kind::Data { DATA_MAX } else { MESSAGE_MAX };
        match usize::try_from(length) {
            Ok(length) if length <= most => Ok(Self { length, kind, request }),
            _ => Err(FrameError::Length(length)),
        }
    }
}

/// The header of a frame with `length` bytes of a file, at most [`DATA_MAX`]; the bytes themselves follow it.
#[must_use]
pub fn encode_data(request: RequestId, length: usize) -> Bytes {
    debug_assert!(length <= DATA_MAX, "{length} bytes in one frame");
    let mut out = Vec::with_capacity(HEADER_LEN);
    Header { length, kind: Kind::Data, request }.encode(&mut out);
    out.into()
}
