//! Errors of rxkad, and their abort codes: `docs/protocol/rxkad.md` "12. Errors".

use afs_rx::SecurityError;

use crate::names::NameError;

/// Why a connection, token or packet is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RxkadError {
    /// A challenge or response of the old version, which does not bind the key to the connection.
    #[error("the peer speaks the old handshake")]
    OldVersion,
    /// A challenge or response is shorter than its fields.
    #[error("a packet of the handshake is too short")]
    PacketShort,
    /// The server requires more than the client's level, or the client's level is unknown, or below the server's
    /// minimum.
    #[error("the protection level does not suffice")]
    Level,
    /// A ticket of less than 32 or more than 12000 bytes, or not of the announced length.
    #[error("the ticket's length is out of bounds")]
    TicketLength,
    /// The response is for another challenge.
    #[error("the response answers another challenge")]
    OutOfSequence,
    /// The ticket is invalid, or not valid yet.
    #[error("the ticket is not valid, or not yet")]
    NotValidYet,
    /// The ticket's session key cannot be used with rxkad.
    #[error("the session key is of no use to rxkad")]
    BadKey,
    /// The ticket is damaged, or has impossible contents.
    #[error("the ticket is not acceptable")]
    BadTicket,
    /// The ticket's client has no AFS name.
    #[error("the ticket's client has no AFS name: {0}")]
    Name(#[from] NameError),
    /// The server does not have the key that the ticket is encrypted with, or does not support keys of its kind: DES.
    #[error("the ticket is encrypted with a key that is not known")]
    UnknownKey,
    /// The ticket has expired.
    #[error("the ticket has expired")]
    Expired,
    /// A checksum or sealed data is wrong.
    #[error("sealed data is inconsistent")]
    Sealed,
    /// A packet announces more data than it has.
    #[error("a sealed packet is too short")]
    DataLength,
}

impl RxkadError {
    /// The abort code.
    #[must_use]
    pub const fn code(self) -> i32 {
        19_270_400
            + match self {
                RxkadError::OldVersion => 0,
                RxkadError::PacketShort => 1,
                RxkadError::Level => 2,
                RxkadError::TicketLength => 3,
                RxkadError::OutOfSequence => 4,
                RxkadError::NotValidYet => 5,
                RxkadError::BadKey => 6,
                RxkadError::BadTicket | RxkadError::Name(_) => 7,
                RxkadError::UnknownKey => 8,
                RxkadError::Expired => 9,
                RxkadError::Sealed => 10,
                RxkadError::DataLength => 11,
            }
    }
}

impl From<RxkadError> for SecurityError {
    fn from(error: RxkadError) -> Self {
        SecurityError { code: error.code() }
    }
}
