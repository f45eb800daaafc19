//! Fingerprint of a drive's public key.

use std::fmt;

use sha2::{Digest, Sha256};

/// SHA-256 of a drive's public key, in the form of SubjectPublicKeyInfo (RFC 5280, 4.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// The fingerprint of a key.
    pub(super) fn of(public_key_info: &[u8]) -> Self {
        Self(Sha256::digest(public_key_info).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}
