//! Checksums of unencrypted messages.

use std::fmt;

use super::derive::{Purpose, usage_key};
use super::mac::HmacKey;
use super::profile::Profile;
use super::{CryptoError, EncType, equal_in_constant_time};

/// Computes and verifies the mandatory checksum of an encryption type, for one key and usage.
#[derive(Clone)]
pub struct MicKey {
    profile: Profile,
    mac: HmacKey,
}

impl MicKey {
    /// Derives the key of a usage.
    ///
    /// # Errors
    /// [`CryptoError::KeyLength`], [`CryptoError::Unsupported`].
    pub fn new(enctype: EncType, key: &[u8], usage: u32) -> Result<Self, CryptoError> {
        let profile = enctype.profile()?;
        let mac = HmacKey::new(profile, &usage_key(enctype, key, usage, Purpose::Checksum)?)?;
        Ok(Self { profile, mac })
    }

    /// Bytes of a checksum.
    #[must_use]
    pub const fn mac_len(&self) -> usize {
        self.profile.mac_len()
    }

    /// Writes the checksum of the concatenation of `first` and `second` to `out`.
    ///
    /// # Errors
    /// [`CryptoError::Short`] when `out` does not have [`MicKey::mac_len`] bytes.
    pub fn sign(&self, first: &[u8], second: &[u8], out: &mut [u8]) -> Result<(), CryptoError> {
        if out.len() != self.mac_len() {
            return Err(CryptoError::Short);
        }
        out.copy_from_slice(self.tag(first, second).as_bytes());
        Ok(())
    }

    /// Verifies a checksum of [`MicKey::sign`].
    ///
    /// # Errors
    /// [`CryptoError::Integrity`].
    pub fn verify(&self, first: &[u8], second: &[u8], mic: &[u8]) -> Result<(), CryptoError> {
        let right = equal_in_constant_time(self.tag(first, second).as_bytes(), mic);
        if right { Ok(()) } else { Err(CryptoError::Integrity) }
    }

    fn tag(&self, first: &[u8], second: &[u8]) -> super::mac::Tag {
        let mut mac = self.mac.clone();
        mac.update(first);
        mac.update(second);
        mac.tag()
    }
}

impl fmt::Debug for MicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MicKey({:?})", self.profile)
    }
}
