//! The cell's login host key, which authenticates its login service to clients.

use std::fmt;

use afs_wire::login::Fixed;
use ed25519_dalek::{Signature, VerifyingKey};
use ssh_key::HashAlg;
use ssh_key::public::{Ed25519PublicKey, KeyData};

use crate::crypto::Transcript;

/// The public half of a cell's login host key (Ed25519). The same for all login servers of a cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostKey(pub [u8; 32]);

/// Prefix of all signed data, so that a signature for another purpose cannot be reused.
const LABEL: &[u8] = b"andrew login host key 1";

impl HostKey {
    /// Verifies a signature over a transcript.
    pub(crate) fn has_signed(&self, said: &Transcript, signature: &Fixed<64>) -> bool {
        let signature = Signature::from_bytes(&signature.0);
        VerifyingKey::from_bytes(&self.0)
            .is_ok_and(|key| key.verify_strict(&signed_bytes(said), &signature).is_ok())
    }
}

/// The bytes that a login host key signs.
pub(crate) fn signed_bytes(said: &Transcript) -> Vec<u8> {
    [LABEL, &said.digest()].concat()
}

/// The fingerprint that OpenSSH would show: `SHA256:…`.
impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        KeyData::Ed25519(Ed25519PublicKey(self.0)).fingerprint(HashAlg::Sha256).fmt(f)
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostKey({self})")
    }
}
