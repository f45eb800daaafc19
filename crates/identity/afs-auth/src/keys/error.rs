//! Errors of keys and key files.

use afs_wire::xdr::DecodeError;

use super::KeyKind;

/// Why a key, or a file of keys, is refused. Reveals nothing of a key's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file ends too early, or a length in it is out of bounds.
    #[error("the key file is damaged: {0}")]
    Damaged(#[from] DecodeError),
    /// The file is of another format.
    #[error("this is no {0}")]
    Format(&'static str),
    /// The key has no bytes, or more than [`KeyRing::KEY_LEN_MAX`](super::KeyRing::KEY_LEN_MAX).
    #[error("a key of {0} bytes")]
    Length(usize),
    /// Another key has the same kind, number and encryption type already.
    #[error("there are two different {kind} keys with number {kvno} and encryption type {enctype}")]
    Twice {
        /// The kind of both.
        kind: KeyKind,
        /// The number of both.
        kvno: u32,
        /// The encryption type of both.
        enctype: i32,
    },
    /// More keys than [`KeyRing::KEYS_MAX`](super::KeyRing::KEYS_MAX).
    #[error("too many keys")]
    TooMany,
    /// No key of this kind is made for this encryption type.
    #[error("no {kind} key is made for encryption type {enctype}")]
    Enctype {
        /// The kind wanted.
        kind: KeyKind,
        /// The encryption type wanted.
        enctype: i32,
    },
}
