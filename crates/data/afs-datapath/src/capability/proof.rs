//! Proof of possession of a secret, for one connection.

use std::fmt;

use afs_wire::xdr::Encode;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::{Capability, Secret};

/// Random bytes of one end for one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nonce(pub [u8; 32]);

/// The nonces of both ends of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nonces {
    /// Chosen by the drive, so that a proof of another connection is worth nothing to it.
    pub drive: Nonce,
    /// Chosen by the client, so that no drive can have it compute a proof for a connection to another one.
    pub client: Nonce,
}

/// HMAC-SHA-256 of a capability's arguments and both nonces, under its secret. It shows possession of the secret on one
/// connection, and nothing on any other.
#[derive(Clone, Copy)]
pub struct Proof(pub [u8; Proof::LEN]);

impl Proof {
    /// Bytes of a proof.
    pub const LEN: usize = 32;

    /// The proof of a capability for a connection.
    #[must_use]
    pub fn new(capability: &Capability, secret: &Secret, nonces: &Nonces) -> Self {
        let arguments = capability.to_bytes();
        Self(mac(secret.expose(), &[PURPOSE, &arguments, &nonces.drive.0, &nonces.client.0]))
    }

    /// Whether two proofs are the same, compared in constant time.
    pub(super) fn equals(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proof(..)")
    }
}

/// Distinguishes a proof from other MACs.
const PURPOSE: &[u8; 16] = b"afs-data-proof-1";

/// HMAC-SHA-256 of the parts, one after the other. Each use has a first part of its own, of 16 bytes.
pub(super) fn mac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = keyed(key);
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// HMAC takes a key of any length.
fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mac) => mac,
        Err(_) => unreachable!("HMAC takes keys of every length"),
    }
}
