//! Why a connection is refused: `docs/protocol/rxgk.md` "2. Constants".

use afs_rx::SecurityError;

use crate::crypto::CryptoError;

macro_rules! codes {
    ($($(#[$meta:meta])* $name:ident = $offset:literal;)*) => { $(
        $(#[$meta])*
        pub const $name: SecurityError = SecurityError { code: 1_233_242_880 + $offset };
    )* };
}

codes! {
    /// Something that cannot be, or is not supported.
    INCONSISTENCY = 0;
    /// Bytes are missing.
    PACKET_SHORT = 1;
    /// The response does not answer our challenge.
    BAD_CHALLENGE = 2;
    /// An encryption type that is not known here.
    BAD_ENCTYPE = 3;
    /// A level that is not known here, or is lower than the server wants.
    BAD_LEVEL = 4;
    /// A key number that is neither in use nor next.
    BAD_KEY_NUMBER = 5;
    /// The token has expired.
    EXPIRED = 6;
    /// The token's holder is nobody who could be given rights.
    NOT_AUTHENTICATED = 7;
    /// No token at all.
    BAD_TOKEN = 8;
    /// Something sealed does not open: changed, made with another key, or meant for another packet.
    SEALED_INCONSISTENT = 9;
    /// A length does not fit.
    DATA_LEN = 10;
}

/// The server does not have the key that the token names. The code is that of OpenAFS's cell configuration.
pub const NO_SUCH_KEY: SecurityError = SecurityError { code: 70_354_689 };

/// The code for what a cipher has to say.
pub(super) fn of(error: CryptoError) -> SecurityError {
    match error {
        CryptoError::Short => PACKET_SHORT,
        CryptoError::Integrity => SEALED_INCONSISTENT,
        CryptoError::Unsupported(_) => BAD_ENCTYPE,
        CryptoError::KeyLength(_) => INCONSISTENCY,
    }
}
