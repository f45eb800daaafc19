//! Encrypting many messages with one key.

use std::fmt;

use super::aes::{BLOCK, Encryptor, cbc_len};
use super::derive::{Purpose, usage_key};
use super::mac::{HmacKey, Tag};
use super::profile::Profile;
use super::{CryptoError, EncType};

/// Encrypts for one key and usage.
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

    /// RFC 3962. One hash block at a time: a processor that looks ahead then does both chains at once, each of which
    /// alone would wait for itself.
    fn mac_and_encrypt(&self, text: &mut [u8]) -> Tag {
        let mut mac = self.mac.clone();
        let (body, last) = text.split_at_mut(cbc_len(text.len()));
        let mut before = [0; BLOCK];
        for piece in body.chunks_mut(self.profile.hash_block()) {
            mac.update(piece);
            self.cipher.cbc(&mut before, piece);
        }
        mac.update(last);
        self.finish(&before, body, last);
        mac.tag()
    }

    /// RFC 8009. The initial vector counts as the first cipher block; the first piece is shorter by it, so that the
    /// hash always gets whole blocks.
    fn encrypt_and_mac(&self, text: &mut [u8]) -> Tag {
        let mut mac = self.mac.clone();
        let mut before = [0; BLOCK];
        mac.update(&before);
        let len = text.len();
        let (body, last) = text.split_at_mut(cbc_len(len));
        // Stealing changes the last block of the body once more.
        let (early, previous) = body.split_at_mut(body.len() - BLOCK);
        let (first, rest) = early.split_at_mut(early.len().min(self.profile.hash_block() - BLOCK));
        for piece in std::iter::once(first).chain(rest.chunks_mut(self.profile.hash_block())) {
            self.cipher.cbc(&mut before, piece);
            mac.update(piece);
        }
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
