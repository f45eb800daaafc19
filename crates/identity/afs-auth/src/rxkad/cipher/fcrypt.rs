//! The block cipher fcrypt: `docs/protocol/rxkad.md` "2. fcrypt".

use std::fmt;

use zeroize::Zeroize;

use super::boxes::BOXES;

const ROUNDS: usize = 16;

/// The contribution of each byte of the round function's input, from the most significant, to its output: the box,
/// the byte's position and the rotation in one look-up.
static ROUND: [[u32; 256]; 4] = [table(0, 8), table(1, 0), table(2, 16), table(3, 24)];

/// A box whose output is shifted up by `shift` bits, before the word is rotated right by five.
const fn table(number: usize, shift: u32) -> [u32; 256] {
    let mut out = [0; 256];
    let mut at = 0;
    while at < 256 {
        out[at] = ((BOXES[number][at] as u32) << shift).rotate_right(5);
        at += 1;
    }
    out
}

/// fcrypt with a key: its sixteen round keys.
#[derive(Clone)]
pub struct Fcrypt([u32; ROUNDS]);

impl Fcrypt {
    /// Expands a key. The low bit of each byte is ignored, and no key is refused.
    #[must_use]
    pub fn new(key: &[u8; 8]) -> Self {
        let mut bits = key.iter().fold(0_u64, |bits, byte| bits << 7 | u64::from(byte >> 1));
        let mut keys = [0; ROUNDS];
        for key in &mut keys {
            *key = low_word(bits);
            bits = (bits >> 11 | bits << (56 - 11)) & ((1 << 56) - 1);
        }
        bits.zeroize();
        Self(keys)
    }

    /// One block, its bytes most significant first.
    #[must_use]
    pub fn encrypt(&self, block: u64) -> u64 {
        let (mut left, mut right) = split(block);
        for [even, odd] in self.0.as_chunks::<2>().0 {
            left ^= round(even ^ right);
            right ^= round(odd ^ left);
        }
        join(left, right)
    }

    /// The inverse of [`Fcrypt::encrypt`].
    #[must_use]
    pub fn decrypt(&self, block: u64) -> u64 {
        let [plain] = self.decrypt_several([block]);
        plain
    }

    /// Decrypts several blocks interleaved: each depends on its own look-ups only, so the processor overlaps them.
    pub(super) fn decrypt_several<const N: usize>(&self, blocks: [u64; N]) -> [u64; N] {
        let mut halves = blocks.map(split);
        for [even, odd] in self.0.as_chunks::<2>().0.iter().rev() {
            for (left, right) in &mut halves {
                *right ^= round(odd ^ *left);
            }
            for (left, right) in &mut halves {
                *left ^= round(even ^ *right);
            }
        }
        halves.map(|(left, right)| join(left, right))
    }
}

fn round(word: u32) -> u32 {
    let [a, b, c, d] = word.to_be_bytes();
    let [first, second, third, fourth] = &ROUND;
    (first[usize::from(a)] ^ second[usize::from(b)]) ^ (third[usize::from(c)] ^ fourth[usize::from(d)])
}

const fn split(block: u64) -> (u32, u32) {
    (low_word(block >> 32), low_word(block))
}

const fn join(left: u32, right: u32) -> u64 {
    (left as u64) << 32 | right as u64
}

/// The low half, on purpose.
const fn low_word(wide: u64) -> u32 {
    (wide & 0xffff_ffff) as u32
}

impl Drop for Fcrypt {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Fcrypt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fcrypt")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    #[test]
    fn the_s_boxes_equal_those_of_the_document() {
        let sums = [
            "ffd5d4f5f65b62e1755d402b42bf45a6d2778fb23179c02d76323cc31183ebe9",
            "a8f88496c3b3b9db530db1a1fcac30d358227e8eb7809084be7fe32f0e047c6c",
            "8f67fbeac3181363ee5f501b26ffa87951f50817a6847f2692fd0e13d81061ca",
            "207791ac8401cbe5cd5e81841cd1cb28df26e21e9550cbe3da9c0620ceffcab8",
        ];
        for (bytes, sum) in BOXES.iter().zip(sums) {
            let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, sum);
        }
    }

    #[test]
    fn round_keys_of_the_worked_example() {
        let keys = Fcrypt::new(&0x68c8_7a15_f78c_4ae6_u64.to_be_bytes()).0;
        assert_eq!(keys[..4], [0xaf71_92f3, 0x3d15_ee32, 0xa647_a2bd, 0x79b4_c8f4]);
        assert_eq!(keys[12..], [0x991e_8af7, 0xe6d3_23d1, 0x64bc_da64, 0x7b8c_979b]);
    }
}
