//! Propagating cipher block chaining, which AFS calls "cbc": `docs/protocol/rxkad.md` "2. fcrypt".

use super::Fcrypt;

/// Blocks decrypted interleaved.
const LANES: usize = 4;

impl Fcrypt {
    /// Encrypts blocks in place, beginning with the initial vector `chain`.
    pub fn encrypt_pcbc(&self, mut chain: u64, blocks: &mut [[u8; 8]]) {
        for block in blocks {
            let plain = u64::from_be_bytes(*block);
            let cipher = self.encrypt(plain ^ chain);
            *block = cipher.to_be_bytes();
            chain = plain ^ cipher;
        }
    }

    /// Decrypts what [`Fcrypt::encrypt_pcbc`] encrypted.
    pub fn decrypt_pcbc(&self, mut chain: u64, blocks: &mut [[u8; 8]]) {
        let (several, rest) = blocks.as_chunks_mut::<LANES>();
        for some in several {
            chain = self.unchain(chain, some);
        }
        for block in rest {
            chain = self.unchain(chain, std::array::from_mut(block));
        }
    }

    fn unchain<const N: usize>(&self, mut chain: u64, blocks: &mut [[u8; 8]; N]) -> u64 {
        let ciphers = blocks.map(u64::from_be_bytes);
        let opened = self.decrypt_several(ciphers);
        for ((block, cipher), opened) in blocks.iter_mut().zip(ciphers).zip(opened) {
            let plain = opened ^ chain;
            *block = plain.to_be_bytes();
            chain = plain ^ cipher;
        }
        chain
    }
}
