//! Authenticated encryption with single-purpose keys.

use afs_rpc::EnvRef;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use sha2::Sha512;
use zeroize::Zeroizing;

use super::randomness::Randomness;

const NONCE_LEN: usize = 24;

/// A sealing key (XChaCha20-Poly1305 with random nonces). Wiped when dropped.
pub(crate) struct SealKey(Zeroizing<[u8; 32]>);

impl SealKey {
    /// The key for one purpose, from a secret shared by the ends that may open (HKDF-SHA-512).
    pub(crate) fn derive(secret: &[u8], salt: &[u8], purpose: &'static str) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        // HKDF refuses only lengths beyond 255 hashes.
        if Hkdf::<Sha512>::new(Some(salt), secret).expand(purpose.as_bytes(), key.as_mut_slice()).is_err() {
            unreachable!("32 bytes are less than 255 hashes");
        }
        Self(key)
    }

    /// A random key.
    pub(crate) fn fresh(env: &EnvRef) -> Self {
        Self(Zeroizing::new(Randomness(env).bytes()))
    }

    /// The sealed form: nonce, then ciphertext and tag. `about` is not in it but must be the same for opening.
    pub(crate) fn seal(&self, about: &[u8], plain: &[u8], env: &EnvRef) -> Vec<u8> {
        let nonce: [u8; NONCE_LEN] = Randomness(env).bytes();
        let sealed = self.cipher().encrypt(XNonce::from_slice(&nonce), Payload { msg: plain, aad: about });
        // The cipher refuses only more than 256 GiB.
        [nonce.as_slice(), &sealed.unwrap_or_default()].concat()
    }

    /// The plain text, or `None` if it was not sealed with this key and the same `about`.
    pub(crate) fn open(&self, about: &[u8], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let payload = Payload { msg: sealed, aad: about };
        self.cipher().decrypt(XNonce::from_slice(nonce), payload).ok().map(Zeroizing::new)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.0).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_rpc::Parts;

    #[test]
    fn a_modified_seal_or_one_of_another_purpose_does_not_open() {
        let env = Parts::default().with_random(|out| out.fill(7)).shared();
        let key = SealKey::derive(b"secret", b"salt", "one");
        let sealed = key.seal(b"about", b"plain", &env);
        assert_eq!(key.open(b"about", &sealed).unwrap().as_slice(), b"plain");
        assert!(key.open(b"other", &sealed).is_none());
        assert!(SealKey::derive(b"secret", b"salt", "two").open(b"about", &sealed).is_none());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(key.open(b"about", &changed).is_none());
            assert!(key.open(b"about", &sealed[..at]).is_none());
        }
    }
}
