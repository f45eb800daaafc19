//! Adapter from `Env`'s randomness to the traits of the cipher crates.

use afs_rpc::EnvRef;
use rand_core::{CryptoRng, RngCore};

/// A generator over the environment's randomness, which is fit for keys.
pub(crate) struct Randomness<'a>(pub(crate) &'a EnvRef);

impl Randomness<'_> {
    /// `N` random bytes.
    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        self.0.random(&mut out);
        out
    }
}

impl RngCore for Randomness<'_> {
    fn next_u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    fn next_u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    fn fill_bytes(&mut self, out: &mut [u8]) {
        self.0.random(out);
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), rand_core::Error> {
        self.fill_bytes(out);
        Ok(())
    }
}

impl CryptoRng for Randomness<'_> {}
