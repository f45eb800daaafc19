//! A key exchange made for one login (X25519, RFC 7748).

use afs_rpc::EnvRef;
use afs_wire::login::Fixed;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use super::randomness::Randomness;
use super::seal::SealKey;

/// What one end tells the other.
pub(crate) type Share = Fixed<32>;

/// One end of an exchange. Its secret is wiped when dropped.
pub(crate) struct Exchange(StaticSecret);

impl Exchange {
    /// A new one.
    pub(crate) fn begin(env: &EnvRef) -> Self {
        Self(StaticSecret::from(Randomness(env).bytes::<32>()))
    }

    /// What to tell the other end.
    pub(crate) fn share(&self) -> Share {
        Fixed(PublicKey::from(&self.0).to_bytes())
    }

    /// The key that both ends come to, bound to what they have said, or `None` when the other end's share is one
    /// that makes everybody's key the same.
    pub(crate) fn finish(self, theirs: Share, said: &[u8], purpose: &'static str) -> Option<SealKey> {
        let shared = self.0.diffie_hellman(&PublicKey::from(theirs.0));
        shared.was_contributory().then(|| SealKey::derive(shared.as_bytes(), said, purpose))
    }
}

impl Exchange {
    /// Its secret, for an end that keeps nothing in memory.
    pub(crate) fn secret(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    /// The same exchange again.
    pub(crate) fn resume(secret: &[u8; 32]) -> Self {
        Self(StaticSecret::from(*secret))
    }
}
