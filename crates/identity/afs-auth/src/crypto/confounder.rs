//! Generator of confounders from one seed.

use std::sync::atomic::{AtomicU64, Ordering};

use afs_rpc::{EnvRef, Parts};

use super::CryptoError;
use super::aes::{BLOCK, Encryptor};

/// A generator of confounders: AES of a counter under a random key. Costs one block each, where a system call would
/// cost more than the encryption of a packet. Unpredictable without the seed. Threads that use it at the same time get different ones.
pub struct Confounders {
    cipher: Encryptor,
    counter: AtomicU64,
}

impl Confounders {
    /// Bytes of a seed.
    pub const SEED_LEN: usize = 32;

    /// A generator with a random seed.
    ///
    /// # Errors
    /// None in practice.
    pub fn new(seed: &[u8; Self::SEED_LEN]) -> Result<Self, CryptoError> {
        Ok(Self { cipher: Encryptor::new(seed)?, counter: AtomicU64::new(0) })
    }

    /// A generator with a seed from `env`.
    ///
    /// # Errors
    /// None in practice.
    pub fn seeded_by(env: &EnvRef) -> Result<Self, CryptoError> {
        let mut seed = zeroize::Zeroizing::new([0; Self::SEED_LEN]);
        env.random(&mut *seed);
        Self::new(&seed)
    }

    /// As the randomness of an [`Env`](afs_rpc::Env) whose wall clock is that of `env`, and which has nothing else.
    #[must_use]
    pub fn into_env(self, env: &EnvRef) -> EnvRef {
        let env = env.clone();
        let random = move |out: &mut [u8]| self.fill(out);
        Parts::default().with_wall(move || env.wall()).with_random(random).shared()
    }

    fn fill(&self, out: &mut [u8]) {
        for piece in out.chunks_mut(BLOCK) {
            let block = self.next_block();
            piece.copy_from_slice(&block[..piece.len()]);
        }
    }

    /// The next block.
    pub fn next_block(&self) -> [u8; BLOCK] {
        let mut block = u128::from(self.counter.fetch_add(1, Ordering::Relaxed)).to_be_bytes();
        self.cipher.block(&mut block);
        block
    }
}

impl std::fmt::Debug for Confounders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Confounders")
    }
}
