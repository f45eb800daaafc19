//! Ephemeral key exchange of one login (X25519, RFC 7748).

use afs_rpc::EnvRef;
use afs_wire::login::Fixed;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use super::randomness::Randomness;
use super::seal::SealKey;

/// The public half of an exchange.
pub(crate) type Share = Fixed<32>;

/// One end of an exchange. Its secret is wiped when dropped.
pub(crate) struct Exchange(StaticSecret);

impl Exchange {
    /// A new exchange.
    pub(crate) fn begin(env: &EnvRef) -> Self {
        Self(StaticSecret::from(Randomness(env).bytes::<32>()))
    }

    /// The public half, for the other end.
    pub(crate) fn share(&self) -> Share {
        Fixed(PublicKey::from(&self.0).to_bytes())
    }

    /// The shared key, bound to the transcript, or `None` when the other end's share is one that makes every key the
    /// same.
    pub(crate) fn finish(self, theirs: Share, said: &[u8], purpose: &'static str) -> Option<SealKey> {
        let shared = self.0.diffie_hellman(&PublicKey::from(theirs.0));
        shared.was_contributory().then(|| SealKey::derive(shared.as_bytes(), said, purpose))
    }
}

impl Exchange {
    /// The secret half, for an end that keeps no state in memory.
    pub(crate) fn secret(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    /// Restores an exchange from its secret half.
    pub(crate) fn resume(secret: &[u8; 32]) -> Self {
        Self(StaticSecret::from(*secret))
    }
}
