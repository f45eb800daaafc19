//! Encryption key of one usage, derived once for many messages.

use std::fmt;

use super::aes::{BLOCK, Encryptor, cbc_len};
use super::chained::Pieces;
use super::derive::{Purpose, usage_key};
use super::mac::{HmacKey, Tag};
use super::profile::Profile;
use super::{CryptoError, EncType};

/// Encrypts with one key and usage.
#[derive(Clone)]
pub struct SealKey {
    profile: Profile,
    cipher: Encryptor,
    mac: HmacKey,
}

impl SealKey {
    /// Derives the keys of a usage.
    ///
    /// # Errors
    /// [`CryptoError::KeyLength`], [`CryptoError::Unsupported`].
    pub fn new(enctype: EncType, key: &[u8], usage: u32) -> Result<Self, CryptoError> {
        let profile = enctype.profile()?;
        let cipher = Encryptor::new(&usage_key(enctype, key, usage, Purpose::Encryption)?)?;
        let mac = HmacKey::new(profile, &usage_key(enctype, key, usage, Purpose::Integrity)?)?;
        Ok(Self { profile, cipher, mac })
    }

    /// Bytes of the confounder before the plain text.
    #[must_use]
    pub const fn confounder_len(&self) -> usize {
        BLOCK
    }

    /// Bytes of the checksum after the cipher text.
    #[must_use]
    pub const fn mac_len(&self) -> usize {
        self.profile.mac_len()
    }

    /// Encrypts in place. `message` is the confounder (random, never used before), the plain text, and room for the
    /// checksum.
    ///
    /// # Errors
    /// [`CryptoError::Short`] when there is no room for confounder and checksum.
    pub fn seal_in_place(&self, message: &mut [u8]) -> Result<(), CryptoError> {
        let text_len = message.len().checked_sub(self.mac_len()).filter(|len| *len >= BLOCK);
        let (text, room) = message.split_at_mut(text_len.ok_or(CryptoError::Short)?);
        let tag = match self.profile.macs_cipher_text() {
            false => self.mac_and_encrypt(text),
            true => self.encrypt_and_mac(text),
        };
        room.copy_from_slice(tag.as_bytes());
        Ok(())
    }

    /// RFC 3962.
    fn mac_and_encrypt(&self, text: &mut [u8]) -> Tag {
        let mut mac = self.mac.clone();
        let (body, last) = text.split_at_mut(cbc_len(text.len()));
        let step = self.profile.piece();
        let before =
            self.cipher.cbc_with_mac(body, &mut mac, Pieces { first: step, step, of_cipher_text: false });
        mac.update(last);
        self.finish(&before, body, last);
        mac.tag()
    }

    /// RFC 8009. The initial vector counts as the first cipher block, and the first piece is shorter by its length,
    /// so that the hash always gets whole blocks.
    fn encrypt_and_mac(&self, text: &mut [u8]) -> Tag {
        let mut mac = self.mac.clone();
        mac.update(&[0; BLOCK]);
        let (body, last) = text.split_at_mut(cbc_len(text.len()));
        // Stealing modifies the last block of the body once more.
        let (early, previous) = body.split_at_mut(body.len() - BLOCK);
        let step = self.profile.piece();
        let pieces = Pieces { first: step - BLOCK, step, of_cipher_text: true };
        let mut before = self.cipher.cbc_with_mac(early, &mut mac, pieces);
        self.cipher.cbc(&mut before, previous);
        self.finish(&before, previous, last);
        mac.update(previous);
        mac.update(last);
        mac.tag()
    }

    fn finish(&self, before: &[u8; BLOCK], body: &mut [u8], last: &mut [u8]) {
        if let (false, Some(previous)) = (last.is_empty(), body.last_chunk_mut::<BLOCK>()) {
            self.cipher.steal(before, previous, last);
        }
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealKey({:?})", self.profile)
    }
}
