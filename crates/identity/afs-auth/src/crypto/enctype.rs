//! Kerberos encryption types, with one-call encryption and decryption.

use std::fmt;

use afs_rpc::EnvRef;

use super::profile::Profile;
use super::{CryptoError, OpenKey, SealKey, rc4_hmac};
use crate::Secret;

/// An encryption type of Kerberos.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EncType {
    /// 17: RFC 3962.
    Aes128Sha1,
    /// 18: RFC 3962. Used by OpenAFS and most realms.
    Aes256Sha1,
    /// 19: RFC 8009.
    Aes128Sha256,
    /// 20: RFC 8009. The type of the keys generated here.
    Aes256Sha384,
    /// 23: RFC 4757. Old; only for Kerberos tickets.
    Rc4Hmac,
}

impl EncType {
    /// Type of new keys.
    pub const DEFAULT: Self = Self::Aes256Sha384;

    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Aes128Sha1, Self::Aes256Sha1, Self::Aes128Sha256, Self::Aes256Sha384, Self::Rc4Hmac];

    /// The Kerberos number of the type.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Aes128Sha1 => 17,
            Self::Aes256Sha1 => 18,
            Self::Aes128Sha256 => 19,
            Self::Aes256Sha384 => 20,
            Self::Rc4Hmac => 23,
        }
    }

    /// The type with this number.
    #[must_use]
    pub const fn from_number(number: i32) -> Option<Self> {
        match number {
            17 => Some(Self::Aes128Sha1),
            18 => Some(Self::Aes256Sha1),
            19 => Some(Self::Aes128Sha256),
            20 => Some(Self::Aes256Sha384),
            23 => Some(Self::Rc4Hmac),
            _ => None,
        }
    }

    /// The name that Kerberos programs use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128Sha1 => "aes128-cts-hmac-sha1-96",
            Self::Aes256Sha1 => "aes256-cts-hmac-sha1-96",
            Self::Aes128Sha256 => "aes128-cts-hmac-sha256-128",
            Self::Aes256Sha384 => "aes256-cts-hmac-sha384-192",
            Self::Rc4Hmac => "arcfour-hmac",
        }
    }

    /// The type with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|enctype| enctype.name() == name)
    }

    /// Bytes of a key, and of the random bytes it is made from.
    #[must_use]
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Sha1 | Self::Aes128Sha256 | Self::Rc4Hmac => 16,
            Self::Aes256Sha1 | Self::Aes256Sha384 => 32,
        }
    }

    /// True if rxgk can use the type: it has derived keys, checksums and a PRF.
    #[must_use]
    pub fn is_for_rxgk(self) -> bool {
        self.profile().is_ok()
    }

    /// A fresh key.
    #[must_use]
    pub fn generate(self, env: &EnvRef) -> Secret {
        let mut bytes = vec![0; self.key_len()];
        env.random(&mut bytes);
        // random-to-key is the identity for all types here.
        Secret::new(bytes)
    }

    /// Encrypts `plain`; the result also holds a random confounder and the checksum.
    ///
    /// # Errors
    /// [`CryptoError::KeyLength`].
    pub fn encrypt(
        &self,
        key: &[u8],
        usage: u32,
        plain: &[u8],
        env: &EnvRef,
    ) -> Result<Vec<u8>, CryptoError> {
        self.check_key(key)?;
        if *self == Self::Rc4Hmac {
            return Ok(rc4_hmac::encrypt(key, usage, plain, env));
        }
        let seal = SealKey::new(*self, key, usage)?;
        let mut message = vec![0; seal.confounder_len()];
        env.random(&mut message);
        message.reserve_exact(plain.len() + seal.mac_len());
        message.extend_from_slice(plain);
        message.resize(message.len() + seal.mac_len(), 0);
        seal.seal_in_place(&mut message)?;
        Ok(message)
    }

    /// Decrypts the result of [`EncType::encrypt`] with the same key and usage.
    ///
    /// # Errors
    /// [`CryptoError::KeyLength`], [`CryptoError::Short`], [`CryptoError::Integrity`].
    pub fn decrypt(&self, key: &[u8], usage: u32, cipher: &[u8]) -> Result<Vec<u8>, CryptoError> {
        self.check_key(key)?;
        if *self == Self::Rc4Hmac {
            return rc4_hmac::decrypt(key, usage, cipher);
        }
        let open = OpenKey::new(*self, key, usage)?;
        let mut message = cipher.to_vec();
        let plain = open.open_in_place(&mut message)?;
        message.truncate(plain.end);
        message.drain(..plain.start);
        Ok(message)
    }

    pub(super) fn check_key(self, key: &[u8]) -> Result<(), CryptoError> {
        if key.len() == self.key_len() { Ok(()) } else { Err(CryptoError::KeyLength(key.len())) }
    }

    pub(super) fn profile(self) -> Result<Profile, CryptoError> {
        match self {
            Self::Aes128Sha1 | Self::Aes256Sha1 => Ok(Profile::Sha1),
            Self::Aes128Sha256 => Ok(Profile::Sha256),
            Self::Aes256Sha384 => Ok(Profile::Sha384),
            Self::Rc4Hmac => Err(CryptoError::Unsupported(self.number())),
        }
    }
}

impl fmt::Display for EncType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
