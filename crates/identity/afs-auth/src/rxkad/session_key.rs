//! Session key of an rxkad connection.

use std::fmt;

use afs_rpc::EnvRef;
use zeroize::Zeroizing;

use super::RxkadError;
use super::cipher::{Fcrypt, compress_triple_des, derive, is_weak, with_odd_parity};
use crate::Secret;

/// Shortest Kerberos key that a session key can be derived from.
const KEY_LEN_MIN: usize = 7;

/// Eight bytes. As an initial vector all bits count, as a key those that DES would use.
#[derive(Clone)]
pub struct SessionKey(Zeroizing<[u8; 8]>);

impl SessionKey {
    /// A key of these bytes, unchanged.
    #[must_use]
    pub fn new(bytes: [u8; 8]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Derives the session key from that of a Kerberos ticket: `docs/protocol/rxkad.md` "7. Session key from non-DES
    /// Kerberos keys".
    ///
    /// # Errors
    /// [`RxkadError::BadKey`] for key types without a derivation.
    pub fn from_kerberos(keytype: i32, key: &[u8]) -> Result<Self, RxkadError> {
        let bytes = match keytype {
            1..=3 => key.try_into().ok(),
            5 | 7 | 16 => derived(Secret::new(compress_triple_des(key)).expose()),
            ..=0 | 4 | 6 | 8..=15 => None,
            _ => derived(key),
        };
        bytes.map(Self::new).ok_or(RxkadError::BadKey)
    }

    /// A random key.
    #[must_use]
    pub fn generate(env: &EnvRef) -> Self {
        let mut bytes = [0; 8];
        env.random(&mut bytes);
        let mut bytes = with_odd_parity(bytes);
        if is_weak(bytes) {
            // No weak key begins like that. The parity is unchanged.
            bytes[0] ^= 0xf0;
        }
        Self::new(bytes)
    }

    /// The bytes themselves.
    #[must_use]
    pub fn expose(&self) -> &[u8; 8] {
        &self.0
    }

    /// The cipher with this key.
    #[must_use]
    pub fn cipher(&self) -> Fcrypt {
        Fcrypt::new(&self.0)
    }

    /// The initial vector of all chains of a connection.
    #[must_use]
    pub fn initial_vector(&self) -> u64 {
        u64::from_be_bytes(*self.0)
    }
}

fn derived(key: &[u8]) -> Option<[u8; 8]> {
    if key.len() < KEY_LEN_MIN { None } else { derive(key) }
}

impl PartialEq for SessionKey {
    fn eq(&self, other: &Self) -> bool {
        crate::crypto::equal_in_constant_time(&*self.0, &*other.0)
    }
}

impl Eq for SessionKey {}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey")
    }
}
