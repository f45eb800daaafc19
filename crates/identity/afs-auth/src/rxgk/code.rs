//! Abort codes of rxgk: `docs/protocol/rxgk.md` "2. Constants".

use afs_rx::SecurityError;

use crate::crypto::CryptoError;

macro_rules! codes {
    ($($(#[$meta:meta])* $name:ident = $offset:literal;)*) => { $(
        $(#[$meta])*
        pub const $name: SecurityError = SecurityError { code: 1_233_242_880 + $offset };
    )* };
}

codes! {
    /// A contradiction, or something unsupported.
    INCONSISTENCY = 0;
    /// Bytes are missing.
    PACKET_SHORT = 1;
    /// The response does not match the challenge.
    BAD_CHALLENGE = 2;
    /// Unknown encryption type.
    BAD_ENCTYPE = 3;
    /// A level that is unknown, or lower than the server's minimum.
    BAD_LEVEL = 4;
    /// A key number that is neither in use nor next.
    BAD_KEY_NUMBER = 5;
    /// The token has expired.
    EXPIRED = 6;
    /// The token's identity cannot be given any rights.
    NOT_AUTHENTICATED = 7;
    /// Not a token.
    BAD_TOKEN = 8;
    /// Sealed data does not open: modified, sealed with another key, or for another packet.
    SEALED_INCONSISTENT = 9;
    /// A length does not fit.
    DATA_LEN = 10;
}

/// The server does not have the key that the token names. The code is that of OpenAFS's cell configuration.
pub const NO_SUCH_KEY: SecurityError = SecurityError { code: 70_354_689 };

/// The code of a cipher's error.
pub(super) fn of(error: CryptoError) -> SecurityError {
    match error {
        CryptoError::Short => PACKET_SHORT,
        CryptoError::Integrity => SEALED_INCONSISTENT,
        CryptoError::Unsupported(_) => BAD_ENCTYPE,
        CryptoError::KeyLength(_) => INCONSISTENCY,
    }
}
