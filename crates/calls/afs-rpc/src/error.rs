//! Errors of calls.

use std::net::SocketAddr;

use afs_wire::error::AbortCode;
use afs_wire::xdr::DecodeError;

/// Why a call failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The peer replied with an abort: the outcome of the operation, or a refusal.
    #[error("{0}")]
    Abort(AbortCode),
    /// Nothing was received from the peer, or for this connection, within the dead time.
    #[error("no answer from {peer}")]
    Unreachable {
        /// The unreachable peer.
        peer: SocketAddr,
    },
    /// The call's own time limit, or the limit on waiting for the peer's next byte, was exceeded.
    #[error("the call took longer than allowed")]
    Timeout,
    /// The peer's bytes do not decode as the operation's types.
    #[error("the answer cannot be read: {0}")]
    Decode(DecodeError),
    /// The stream ended early.
    #[error("the stream ended early")]
    Ended,
    /// The stream is longer than the reader's limit.
    #[error("more than {limit} bytes where no more are allowed")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// This side aborted the call, with this code.
    #[error("given up with {0}")]
    GivenUp(AbortCode),
    /// The client began another call on the channel before this one had a reply.
    #[error("the client has given the call up for a newer one")]
    Superseded,
    /// The operation does not fit the call's state: writing after the reply has begun, for example.
    #[error("the operation does not fit the state of the call")]
    Misuse,
    /// The transport has been closed.
    #[error("the transport is closed")]
    Closed,
}

impl CallError {
    /// The peer's abort code, if an abort ended the call.
    #[must_use]
    pub fn abort_code(&self) -> Option<AbortCode> {
        match self {
            Self::Abort(code) => Some(*code),
            _ => None,
        }
    }

    /// Converts an error of the transport.
    pub(crate) fn from_rx(error: afs_rx::CallError, peer: SocketAddr) -> Self {
        use afs_rx::CallError as Rx;
        match error {
            Rx::RemoteAbort(code) | Rx::ConnectionAborted(code) => Self::Abort(AbortCode(code)),
            Rx::LocalAbort(code) | Rx::ConnectionFailed(code) => Self::GivenUp(AbortCode(code)),
            Rx::Unreachable => Self::Unreachable { peer },
            Rx::Timeout => Self::Timeout,
            Rx::Superseded => Self::Superseded,
            Rx::Unknown => Self::Closed,
            _ => Self::Misuse,
        }
    }

    /// Whether another server, or the same one later, may well succeed: the peer never replied.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Timeout)
    }
}

impl From<DecodeError> for CallError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}
