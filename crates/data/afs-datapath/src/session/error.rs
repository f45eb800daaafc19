//! Errors of a client.

use std::io;

use tokio_rustls::rustls;

use crate::frame::{Failure, FrameError, Goodbye};

/// Why a connection ended. All its requests fail with it; another connection may succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The stream failed.
    #[error("the connection failed: {0}")]
    Stream(io::ErrorKind),
    /// The stream ended without a goodbye.
    #[error("the connection was cut")]
    Cut,
    /// The peer was silent for too long.
    #[error("the peer is silent")]
    Silent,
    /// The peer took no bytes for too long.
    #[error("the peer takes no bytes")]
    Stuck,
    /// The handshake took too long.
    #[error("the handshake took too long")]
    Handshake,
    /// The peer has another key than the one with the fingerprint, or could not prove that it has that one.
    #[error("the peer could not prove its key: {0}")]
    Key(String),
    /// TLS failed otherwise: the peer is no TLS server, a record was damaged, or an alert came.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// The peer sent what is no frame.
    #[error("the peer sent no valid frame: {0}")]
    Frame(#[from] FrameError),
    /// The peer sent a valid frame where there can be none.
    #[error("the peer violated the protocol: {0}")]
    Violation(&'static str),
    /// Nothing was asked for long.
    #[error("the connection was idle")]
    Idle,
    /// The peer closed it.
    #[error(transparent)]
    Goodbye(Goodbye),
    /// This end closed it.
    #[error("the connection was closed here")]
    Closed,
}

impl Lost {
    /// Reason in the Goodbye that this end sends when it closes the connection; `None` where the stream cannot carry one.
    pub(super) fn farewell(&self) -> Option<Goodbye> {
        match self {
            Self::Frame(_) | Self::Violation(_) => Some(Goodbye::Violation),
            Self::Closed => Some(Goodbye::Done),
            Self::Idle => Some(Goodbye::Idle),
            Self::Stream(_) | Self::Cut | Self::Silent | Self::Stuck => None,
            Self::Handshake | Self::Key(_) | Self::Tls(_) | Self::Goodbye(_) => None,
        }
    }
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(why)) => return Self::Key(why.to_string()),
            Some(other) => return Self::Tls(other.to_string()),
            None => {}
        }
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Cut,
            kind => Self::Stream(kind),
        }
    }
}

/// Why a client has not what it asked for. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The drive did not do it. The connection continues.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The connection has ended.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// As many handles as the drive permits are in use.
    #[error("too many capabilities are in use on this connection")]
    Handles,
    /// The drive made no progress with the request for too long.
    #[error("the drive made no progress")]
    Stalled,
    /// More bytes were given to a store than its ranges have, or fewer.
    #[error("the store has other bytes than its ranges")]
    Length,
}
