//! Parameters of the AES encryption types.

/// The hash of an AES encryption type, which determines the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Profile {
    /// RFC 3962: the checksum is of the plain text.
    Sha1,
    /// RFC 8009: the checksum is of the initial vector and the cipher text.
    Sha256,
    /// RFC 8009.
    Sha384,
}

impl Profile {
    /// Bytes of a checksum.
    pub(super) const fn mac_len(self) -> usize {
        match self {
            Self::Sha1 => 12,
            Self::Sha256 => 16,
            Self::Sha384 => 24,
        }
    }

    /// Bytes given to cipher and hash in turn: the number of hash blocks that measured fastest.
    pub(super) const fn piece(self) -> usize {
        match self {
            Self::Sha1 => 64,
            Self::Sha256 => 2 * 64,
            Self::Sha384 => 128,
        }
    }

    /// Bytes of the derived keys Kc and Ki. `key_len` is that of the key they are derived from.
    pub(super) const fn mac_key_len(self, key_len: usize) -> usize {
        match self {
            Self::Sha1 => key_len,
            Self::Sha256 => 16,
            Self::Sha384 => 24,
        }
    }

    /// True when the cipher text is authenticated, not the plain text.
    pub(super) const fn macs_cipher_text(self) -> bool {
        !matches!(self, Self::Sha1)
    }
}
