//! What can go wrong with a cipher.

/// Why something was not encrypted, decrypted or verified. Says nothing about which byte was wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CryptoError {
    /// The key does not have the encryption type's length.
    #[error("a key of {0} bytes does not fit its encryption type")]
    KeyLength(usize),
    /// Fewer bytes than an empty message takes.
    #[error("too short to be encrypted data")]
    Short,
    /// The checksum is wrong: another key, another use, or changed on the way.
    #[error("the integrity check failed")]
    Integrity,
    /// The encryption type has no such operation here.
    #[error("encryption type {0} cannot do this")]
    Unsupported(i32),
}
