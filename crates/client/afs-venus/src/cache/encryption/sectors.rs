//! AES-256-XTS (IEEE 1619) over sectors of 4096 bytes; a sector of zeros is a hole, encrypted or not.

use aes::cipher::{Array, Block, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes256Dec, Aes256Enc};

/// Bytes of a sector.
pub(in crate::cache) const SECTOR: u64 = 4096;

const SECTOR_LEN: usize = SECTOR as usize;
/// Blocks of the cipher in a sector.
const BLOCKS: usize = SECTOR_LEN / 16;
/// The polynomial of the field of tweaks.
const POLYNOMIAL: u128 = 0x87;

type AesBlock = Block<Aes256Enc>;

/// The cipher of one file.
pub(in crate::cache) struct SectorCipher {
    encryptor: Aes256Enc,
    decryptor: Aes256Dec,
    tweaks: Aes256Enc,
}

impl SectorCipher {
    /// Of two keys of 32 bytes.
    pub fn new(data: &[u8], tweak: &[u8]) -> Self {
        let encryptor = |key| Aes256Enc::new_from_slice(key);
        match (encryptor(data), Aes256Dec::new_from_slice(data), encryptor(tweak)) {
            (Ok(encryptor), Ok(decryptor), Ok(tweaks)) => Self { encryptor, decryptor, tweaks },
            _ => unreachable!("both keys have 32 bytes"),
        }
    }

    /// Encrypts whole sectors, the first of which has this number. Zeros become a cipher text, too: who wants a hole leaves the sector out.
    pub fn encrypt(&self, first: u64, data: &mut [u8]) {
        for (number, sector) in (first..).zip(data.chunks_exact_mut(SECTOR_LEN)) {
            self.tweaked(number, sector, |blocks| self.encryptor.encrypt_blocks(blocks));
        }
    }

    /// Decrypts whole sectors, the first of which has this number. Holes stay zeros.
    pub fn decrypt(&self, first: u64, data: &mut [u8]) {
        for (number, sector) in (first..).zip(data.chunks_exact_mut(SECTOR_LEN)) {
            if !is_hole(sector) {
                self.tweaked(number, sector, |blocks| self.decryptor.decrypt_blocks(blocks));
            }
        }
    }

    fn tweaked(&self, number: u64, sector: &mut [u8], cipher: impl FnOnce(&mut [AesBlock])) {
        let tweaks = self.tweaks_of(number);
        let (blocks, _) = AesBlock::slice_as_chunks_mut(sector);
        mask(blocks, &tweaks);
        cipher(blocks);
        mask(blocks, &tweaks);
    }

    fn tweaks_of(&self, number: u64) -> [u128; BLOCKS] {
        let mut first = u128::from(number).to_le_bytes();
        self.tweaks.encrypt_block(Array::cast_from_core_mut(&mut first));
        let mut next = u128::from_le_bytes(first);
        let mut tweaks = [0; BLOCKS];
        for tweak in &mut tweaks {
            *tweak = next;
            next = (next << 1) ^ (POLYNOMIAL * (next >> 127));
        }
        tweaks
    }
}

fn mask(blocks: &mut [AesBlock], tweaks: &[u128; BLOCKS]) {
    for (block, tweak) in blocks.iter_mut().zip(tweaks) {
        block.0 = (u128::from_le_bytes(block.0) ^ tweak).to_le_bytes();
    }
}

/// Whether the bytes are those of a hole: no cipher text is all zeros, but one of 2^32768.
fn is_hole(sector: &[u8]) -> bool {
    let (words, rest) = sector.as_chunks::<16>();
    words.iter().all(|word| u128::from_ne_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    /// Vector 10 of IEEE 1619-2007, annex B; the rest of the sector is longer than its data unit, and does not concern its beginning.
    #[test]
    fn the_cipher_is_xts_of_the_standard() {
        let cipher = SectorCipher::new(
            &bytes("2718281828459045235360287471352662497757247093699959574966967627"),
            &bytes("3141592653589793238462643383279502884197169399375105820974944592"),
        );
        let plain: Vec<u8> = (0..SECTOR_LEN).map(|n| n as u8).collect();
        let mut data = plain.clone();
        cipher.encrypt(0xff, &mut data);
        let wanted = bytes(concat!(
            "1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b",
            "5d31e276f8fe4a8d66b317f9ac683f44680a86ac35adfc3345befecb4bb188fd"
        ));
        assert_eq!(data.get(..64), Some(wanted.as_slice()));
        cipher.decrypt(0xff, &mut data);
        assert_eq!(data, plain);
    }

    #[test]
    fn sectors_differ_by_their_number_and_holes_stay_holes() {
        let cipher = SectorCipher::new(&[1; 32], &[2; 32]);
        let mut data = vec![0; 3 * SECTOR_LEN];
        cipher.decrypt(0, &mut data);
        assert!(is_hole(&data));
        cipher.encrypt(5, &mut data);
        let (one, rest) = data.split_at(SECTOR_LEN);
        assert!(!is_hole(one) && one != &rest[..SECTOR_LEN] && one[..16] != one[16..32]);
        cipher.decrypt(5, &mut data);
        assert!(is_hole(&data), "zeros that were written");
    }
}
