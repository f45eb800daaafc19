//! Decryption key of one usage, derived once for many messages.

use std::fmt;
use std::ops::Range;

use super::aes::{BLOCK, Decryptor, cbc_len};
use super::derive::{Purpose, usage_key};
use super::mac::HmacKey;
use super::profile::Profile;
use super::{CryptoError, EncType, equal_in_constant_time};

/// Decrypts with one key and usage.
#[derive(Clone)]
pub struct OpenKey {
    profile: Profile,
    cipher: Decryptor,
    mac: HmacKey,
}

impl OpenKey {
    /// Derives the keys of a usage.
    ///
    /// # Errors
    /// [`CryptoError::KeyLength`], [`CryptoError::Unsupported`].
    pub fn new(enctype: EncType, key: &[u8], usage: u32) -> Result<Self, CryptoError> {
        let profile = enctype.profile()?;
        let cipher = Decryptor::new(&usage_key(enctype, key, usage, Purpose::Encryption)?)?;
        let mac = HmacKey::new(profile, &usage_key(enctype, key, usage, Purpose::Integrity)?)?;
        Ok(Self { profile, cipher, mac })
    }

    /// Verifies and decrypts in place; returns the range of the plain text in `message`. After an error the contents
    /// of `message` are undefined.
    ///
    /// # Errors
    /// [`CryptoError::Short`], [`CryptoError::Integrity`].
    pub fn open_in_place(&self, message: &mut [u8]) -> Result<Range<usize>, CryptoError> {
        let text_len = message.len().checked_sub(self.profile.mac_len()).filter(|len| *len >= BLOCK);
        let (text, tag) = message.split_at_mut(text_len.ok_or(CryptoError::Short)?);
        let mut mac = self.mac.clone();
        if self.profile.macs_cipher_text() {
            mac.update(&[0; BLOCK]);
            mac.update(text);
            verify(mac, tag)?;
            self.decrypt(text);
        } else {
            self.decrypt(text);
            mac.update(text);
            verify(mac, tag)?;
        }
        Ok(BLOCK..text.len())
    }

    fn decrypt(&self, text: &mut [u8]) {
        let (body, last) = text.split_at_mut(cbc_len(text.len()));
        let mut before = [0; BLOCK];
        if last.is_empty() {
            return self.cipher.cbc(&mut before, body);
        }
        if let Some((early, previous)) = body.split_last_chunk_mut::<BLOCK>() {
            self.cipher.cbc(&mut before, early);
            self.cipher.unsteal(&before, previous, last);
        }
    }
}

fn verify(mac: HmacKey, tag: &[u8]) -> Result<(), CryptoError> {
    let right = equal_in_constant_time(mac.tag().as_bytes(), tag);
    if right { Ok(()) } else { Err(CryptoError::Integrity) }
}

impl fmt::Debug for OpenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenKey({:?})", self.profile)
    }
}
