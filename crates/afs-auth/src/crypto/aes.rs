//! AES in CBC mode with ciphertext stealing, always from a zero vector: RFC 3962 section 5.

use ::aes::cipher::{Array, Block, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use ::aes::{Aes128Dec, Aes128Enc, Aes256Dec, Aes256Enc};
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, InnerIvInit};

use super::CryptoError;

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

    /// One block by itself.
    pub(super) fn block(&self, block: &mut [u8; BLOCK]) {
        let block = Array::cast_from_core_mut(block);
        match self {
            Self::Aes128(cipher) => cipher.encrypt_block(block),
            Self::Aes256(cipher) => cipher.encrypt_block(block),
        }
    }

    /// Whole blocks in CBC mode, after the cipher block `before`, which becomes the last one. Bytes beyond the last
    /// whole block are left alone.
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

    /// The end of a message whose blocks before `last` (1 to 16 bytes) are encrypted: steals from the block before.
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

/// Where the part of a message of `len` bytes ends that plain CBC covers: the last two blocks, the second of which
/// may be short, are left to stealing. One block alone has no partner, and is plain CBC.
pub(super) const fn cbc_len(len: usize) -> usize {
    match len.div_ceil(BLOCK) {
        0 | 1 => BLOCK,
        blocks => (blocks - 1) * BLOCK,
    }
}
