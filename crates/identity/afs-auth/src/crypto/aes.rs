//! AES in CBC mode with ciphertext stealing, always from a zero vector: RFC 3962 section 5.

use ::aes::cipher::{Array, Block, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use ::aes::{Aes128Dec, Aes128Enc, Aes256Dec, Aes256Enc};
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, InnerIvInit};

use super::CryptoError;
use super::chained::{Chained, Pieces};
use super::mac::HmacKey;

/// Bytes of a block.
pub(super) const BLOCK: usize = 16;

type AesBlock = Block<Aes128Enc>;

/// Encrypts with one key.
#[derive(Clone)]
pub(super) enum Encryptor {
    Aes128(Aes128Enc),
    Aes256(Aes256Enc),
}

/// Decrypts with one key.
#[derive(Clone)]
pub(super) enum Decryptor {
    Aes128(Aes128Dec),
    Aes256(Aes256Dec),
}

impl Encryptor {
    pub(super) fn new(key: &[u8]) -> Result<Self, CryptoError> {
        let bad = |_| CryptoError::KeyLength(key.len());
        match key.len() {
            BLOCK => Aes128Enc::new_from_slice(key).map(Self::Aes128).map_err(bad),
            _ => Aes256Enc::new_from_slice(key).map(Self::Aes256).map_err(bad),
        }
    }

    /// Encrypts one block by itself.
    pub(super) fn block(&self, block: &mut [u8; BLOCK]) {
        let block = Array::cast_from_core_mut(block);
        match self {
            Self::Aes128(cipher) => cipher.encrypt_block(block),
            Self::Aes256(cipher) => cipher.encrypt_block(block),
        }
    }

    /// Encrypts whole blocks in CBC mode, after the cipher block `before`, which becomes the last one. Bytes beyond
    /// the last whole block are left unchanged.
    pub(super) fn cbc(&self, before: &mut [u8; BLOCK], data: &mut [u8]) {
        let (blocks, _) = AesBlock::slice_as_chunks_mut(data);
        let vector = Array::cast_from_core(before);
        match self {
            Self::Aes128(cipher) => cbc::Encryptor::inner_iv_init(cipher, vector).encrypt_blocks(blocks),
            Self::Aes256(cipher) => cbc::Encryptor::inner_iv_init(cipher, vector).encrypt_blocks(blocks),
        }
        if let Some(last) = blocks.last() {
            *before = (*last).into();
        }
    }

    /// Encrypts all blocks of `text` in CBC mode from a zero vector, and computes their checksum; returns the last
    /// cipher block.
    pub(super) fn cbc_with_mac(&self, text: &mut [u8], mac: &mut HmacKey, pieces: Pieces) -> [u8; BLOCK] {
        let mut last = AesBlock::default();
        let chained = Chained { text, mac, pieces, last: &mut last };
        match self {
            Self::Aes128(cipher) => cipher.encrypt_with_backend(chained),
            Self::Aes256(cipher) => cipher.encrypt_with_backend(chained),
        }
        last.into()
    }

    /// Encrypts the end of a message whose blocks before `last` (1 to 16 bytes) are encrypted, by stealing from the
    /// previous block.
    pub(super) fn steal(&self, before: &[u8; BLOCK], previous: &mut [u8], last: &mut [u8]) {
        let mut block = *before;
        block.iter_mut().zip(last.iter()).for_each(|(byte, plain)| *byte ^= plain);
        self.block(&mut block);
        last.copy_from_slice(&before[..last.len()]);
        previous.copy_from_slice(&block);
    }
}

impl Decryptor {
    pub(super) fn new(key: &[u8]) -> Result<Self, CryptoError> {
        let bad = |_| CryptoError::KeyLength(key.len());
        match key.len() {
            BLOCK => Aes128Dec::new_from_slice(key).map(Self::Aes128).map_err(bad),
            _ => Aes256Dec::new_from_slice(key).map(Self::Aes256).map_err(bad),
        }
    }

    fn block(&self, block: &mut [u8; BLOCK]) {
        let block = Array::cast_from_core_mut(block);
        match self {
            Self::Aes128(cipher) => cipher.decrypt_block(block),
            Self::Aes256(cipher) => cipher.decrypt_block(block),
        }
    }

    /// The counterpart of [`Encryptor::cbc`].
    pub(super) fn cbc(&self, before: &mut [u8; BLOCK], data: &mut [u8]) {
        let (blocks, _) = AesBlock::slice_as_chunks_mut(data);
        let Some(last) = blocks.last().copied() else { return };
        let vector = Array::cast_from_core(before);
        match self {
            Self::Aes128(cipher) => cbc::Decryptor::inner_iv_init(cipher, vector).decrypt_blocks(blocks),
            Self::Aes256(cipher) => cbc::Decryptor::inner_iv_init(cipher, vector).decrypt_blocks(blocks),
        }
        *before = last.into();
    }

    /// The counterpart of [`Encryptor::steal`]; `before` is the cipher block before `previous`.
    pub(super) fn unsteal(&self, before: &[u8; BLOCK], previous: &mut [u8; BLOCK], last: &mut [u8]) {
        let mut stolen = *previous;
        self.block(&mut stolen);
        let mut block = stolen;
        for (at, byte) in last.iter_mut().enumerate() {
            block[at] = *byte;
            *byte ^= stolen[at];
        }
        self.block(&mut block);
        block.iter_mut().zip(before).for_each(|(byte, vector)| *byte ^= vector);
        *previous = block;
    }
}

/// Length of the part of a message of `len` bytes that plain CBC covers: the last two blocks, the second of which may
/// be short, are left to stealing. A single block is plain CBC.
pub(super) const fn cbc_len(len: usize) -> usize {
    match len.div_ceil(BLOCK) {
        0 | 1 => BLOCK,
        blocks => (blocks - 1) * BLOCK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8; 64] = b"I would like the General Gau's Chicken, please, and wonton soup.";

    fn check(len: usize, expected: &str) {
        let key = b"chicken teriyaki";
        let (cipher, opener) = (Encryptor::new(key).unwrap(), Decryptor::new(key).unwrap());
        let mut message = TEXT[..len].to_vec();
        let (body, last) = message.split_at_mut(cbc_len(len));
        let mut before = [0; BLOCK];
        cipher.cbc(&mut before, body);
        cipher.steal(&before, body.last_chunk_mut::<BLOCK>().unwrap(), last);
        let hex: String = message.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected);
        let (body, last) = message.split_at_mut(cbc_len(len));
        let (early, previous) = body.split_last_chunk_mut::<BLOCK>().unwrap();
        let mut before = [0; BLOCK];
        opener.cbc(&mut before, early);
        opener.unsteal(&before, previous, last);
        assert_eq!(message, &TEXT[..len]);
    }

    /// RFC 3962 appendix B.
    #[test]
    fn ciphertext_stealing() {
        check(17, "c6353568f2bf8cb4d8a580362da7ff7f97");
        check(31, "fc00783e0efdb2c1d445d4c8eff7ed2297687268d6ecccc0c07b25e25ecfe5");
        check(32, "39312523a78662d5be7fcbcc98ebf5a897687268d6ecccc0c07b25e25ecfe584");
        check(
            47,
            "97687268d6ecccc0c07b25e25ecfe584b3fffd940c16a18c1b5549d2f838029e39312523a78662d5be7fcbcc98ebf5",
        );
        check(
            48,
            "97687268d6ecccc0c07b25e25ecfe5849dad8bbb96c4cdc03bc103e1a194bbd839312523a78662d5be7fcbcc98ebf5a8",
        );
        check(
            64,
            "97687268d6ecccc0c07b25e25ecfe58439312523a78662d5be7fcbcc98ebf5a8\
             4807efe836ee89a526730dbc2f7bc8409dad8bbb96c4cdc03bc103e1a194bbd8",
        );
    }
}
