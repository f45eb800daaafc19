//! Many unpredictable blocks from one seed.

use std::sync::{Arc, Mutex, PoisonError};

use super::CryptoError;
use super::aes::{BLOCK, Encryptor};
use crate::Random;

/// A generator of confounders: AES of a counter under a random key. Costs one block each, where asking the
/// operating system every time would cost more than encrypting a packet. Unpredictable to whoever does not know the
/// seed.
#[derive(Clone)]
pub struct Confounders {
    cipher: Encryptor,
    counter: u128,
}

impl Confounders {
    /// Bytes of a seed.
    pub const SEED_LEN: usize = 32;

    /// From a random seed.
    ///
    /// # Errors
    /// None in practice.
    pub fn new(seed: &[u8; Self::SEED_LEN]) -> Result<Self, CryptoError> {
        Ok(Self { cipher: Encryptor::new(seed)?, counter: 0 })
    }

    /// From a seed that `random` gives.
    ///
    /// # Errors
    /// None in practice.
    pub fn from_random(random: &Random) -> Result<Self, CryptoError> {
        let mut seed = zeroize::Zeroizing::new([0; Self::SEED_LEN]);
        random(&mut *seed);
        Self::new(&seed)
    }

    /// As a source of randomness.
    #[must_use]
    pub fn into_random(self) -> Random {
        let generator = Mutex::new(self);
        Arc::new(move |out: &mut [u8]| {
            let mut generator = generator.lock().unwrap_or_else(PoisonError::into_inner);
            for piece in out.chunks_mut(BLOCK) {
                let block = generator.next_block();
                piece.copy_from_slice(&block[..piece.len()]);
            }
        })
    }

    /// The next block.
    pub fn next_block(&mut self) -> [u8; BLOCK] {
        let mut block = self.counter.to_be_bytes();
        self.counter = self.counter.wrapping_add(1);
        self.cipher.block(&mut block);
        block
    }
}

impl std::fmt::Debug for Confounders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Confounders")
    }
}
