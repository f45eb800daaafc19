//! Errors of ciphers.

/// Why encryption, decryption or verification failed. Does not reveal which byte was wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CryptoError {
    /// The key does not have the encryption type's length.
    #[error("a key of {0} bytes does not fit its encryption type")]
    KeyLength(usize),
    /// Shorter than an empty message.
    #[error("too short to be encrypted data")]
    Short,
    /// The checksum is wrong: another key, another usage, or modified data.
    #[error("the integrity check failed")]
    Integrity,
    /// The encryption type does not support the operation here.
    #[error("encryption type {0} cannot do this")]
    Unsupported(i32),
}
