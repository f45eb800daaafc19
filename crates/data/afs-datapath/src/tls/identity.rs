//! The key pair of a drive.

use std::fmt;
use std::sync::Arc;

use afs_env::{Env, EnvExt};
use tokio_rustls::rustls::crypto::ring::sign::any_eddsa_type;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;
use zeroize::Zeroizing;

use super::Fingerprint;

/// A drive's Ed25519 key pair for TLS. A file server has a new one at each start, and tells clients the fingerprint by an
/// authenticated call; a drive on another host keeps its own.
#[derive(Clone)]
pub struct Identity {
    key: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
}

/// The library could not use the key. Does not happen with a key of 32 bytes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the key of the data path cannot be used: {0}")]
pub struct BadKey(String);

/// PrivateKeyInfo of an Ed25519 key before its 32 bytes: RFC 8410, 7 (version 0, OID 1.3.101.112).
const PKCS8_HEAD: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

impl Identity {
    /// A new key.
    ///
    /// # Errors
    /// [`BadKey`].
    pub fn generate(env: &dyn Env) -> Result<Self, BadKey> {
        Self::of_seed(&Zeroizing::new(env.random_bytes::<32>()))
    }

    /// The key of 32 bytes that its owner keeps, and nobody else knows.
    ///
    /// # Errors
    /// [`BadKey`].
    pub fn of_seed(seed: &[u8; 32]) -> Result<Self, BadKey> {
        let private = Zeroizing::new([&PKCS8_HEAD[..], &seed[..]].concat());
        let key = any_eddsa_type(&PrivatePkcs8KeyDer::from(private.as_slice()));
        let key = key.map_err(|error| BadKey(error.to_string()))?;
        let public = key.public_key().ok_or_else(|| BadKey("it has no public part".to_owned()))?.to_vec();
        let fingerprint = Fingerprint::of(&public);
        Ok(Self { key: Arc::new(CertifiedKey::new(vec![CertificateDer::from(public)], key)), fingerprint })
    }

    /// What clients pin.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    pub(super) fn key(&self) -> Arc<CertifiedKey> {
        self.key.clone()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032, 7.1, test 1: the public key of this seed.
    #[test]
    fn the_key_is_that_of_the_seed() {
        let seed = [
            0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
            0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
        ];
        let identity = Identity::of_seed(&seed).unwrap();
        let public = identity.key.cert[0].as_ref();
        assert_eq!(public.len(), 44);
        assert_eq!(public[12..16], [0xd7, 0x5a, 0x98, 0x01]);
        assert_eq!(identity.fingerprint(), Fingerprint::of(public));
    }
}
