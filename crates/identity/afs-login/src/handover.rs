//! Handover of a cell's keys between its servers, sealed for a share (X25519) that the receiving process made.
//!
//! The calls that carry them are encrypted with the cell's present key. That key may be replaced because a thief has it: a thief who
//! recorded the calls must not learn the next key from them.

use std::fmt;

use afs_auth::keys::KeyRing;
use afs_rpc::EnvRef;
use afs_wire::login::Fixed;
use afs_wire::xdr::{Decode, Reader};

use crate::crypto::{Exchange, SealKey, Share};

const PURPOSE: &str = "andrew cell keys 1";
const ABOUT: &[u8] = b"andrew cell keys";

/// The end that receives keys: one for the life of a process.
pub struct KeyReceiver {
    secret: zeroize::Zeroizing<[u8; 32]>,
    share: Share,
}

impl fmt::Debug for KeyReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyReceiver")
    }
}

impl KeyReceiver {
    /// A new one.
    #[must_use]
    pub fn new(env: &EnvRef) -> Self {
        let exchange = Exchange::begin(env);
        Self { secret: exchange.secret(), share: exchange.share() }
    }

    /// Its public half.
    #[must_use]
    pub fn share(&self) -> Share {
        self.share
    }

    /// The keys in a sealed message; `None` if it was not sealed for this process, or has no keys.
    #[must_use]
    pub fn open(&self, sealed: &[u8]) -> Option<KeyRing> {
        let mut reader = Reader::new(sealed);
        let theirs = Share::decode(&mut reader).ok()?;
        let body = reader.raw(reader.remaining()).ok()?;
        let key = key(Exchange::resume(&self.secret), theirs, theirs, self.share)?;
        KeyRing::from_key_file_ext(&key.open(ABOUT, body)?).ok()
    }
}

/// Seals the used keys of a ring for a process with this share; `None` if it is no share.
#[must_use]
pub fn seal_keys(keys: &KeyRing, to: [u8; 32], env: &EnvRef) -> Option<Vec<u8>> {
    let (exchange, to) = (Exchange::begin(env), Fixed(to));
    let share = exchange.share();
    let key = key(exchange, to, share, to)?;
    Some([&share.0[..], &key.seal(ABOUT, keys.to_key_file_ext().expose(), env)].concat())
}

/// The key of a message, bound to both shares.
fn key(own: Exchange, theirs: Share, sender: Share, receiver: Share) -> Option<SealKey> {
    own.finish(theirs, &[sender.0, receiver.0].concat(), PURPOSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_auth::keys::{KeyKind, generate};
    use afs_rpc::Parts;
    use std::sync::atomic::{AtomicU8, Ordering};

    #[test]
    fn keys_open_for_the_process_that_they_were_sealed_for_and_unchanged() {
        let count = AtomicU8::new(0);
        let random = move |out: &mut [u8]| {
            out.iter_mut().for_each(|byte| *byte = count.fetch_add(7, Ordering::Relaxed))
        };
        let env = Parts::default().with_random(random).shared();
        let mut ring = KeyRing::default();
        ring.add(generate(KeyKind::Rxgk, 20, 2, &env).unwrap()).unwrap();
        let (one, other) = (KeyReceiver::new(&env), KeyReceiver::new(&env));
        let sealed = seal_keys(&ring, one.share().0, &env).unwrap();
        assert_eq!(one.open(&sealed), Some(ring.clone()));
        assert_eq!(other.open(&sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            // The highest bit of a share is no part of it.
            assert!(at == 31 || one.open(&changed).is_none(), "{at}");
            assert_eq!(one.open(&sealed[..at]), None);
        }
        assert_eq!(seal_keys(&ring, [0; 32], &env), None);
    }
}
