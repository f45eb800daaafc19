//! Masking of a record's rows, so that they never hold the salt of their turn.
//!
//! Behind a record that a crash has torn, recovery searches for later records of the turn: by the salt, at every place where one
//! could begin, also among the bytes of the torn one, which users have chosen. Who has learnt the salt could store records of
//! their own making there. A record whose rows hold the salt at such a place is therefore written with all its rows XORed with a
//! mask, 64 bits long, by which they do not. That costs a comparison for every 8 bytes, and happens to nobody by chance.

use crate::log_turn::Salt;
use crate::record::{ALIGNMENT, HEAD_LEN};

/// Length of a mask, which stands before the masked rows.
pub(crate) const MASK_LEN: usize = 8;
const _: () = assert!(MASK_LEN == ALIGNMENT && HEAD_LEN.is_multiple_of(ALIGNMENT));

/// A mask for the rows of a record, if they need one.
pub(crate) fn needed(rows: &[u8], salt: Salt) -> Option<u64> {
    let [first, second] = halves(salt);
    let holds_salt = |mask: u64| {
        let masked = words(rows).map(|word| word ^ mask);
        // The mask itself stands before the rows.
        let all = std::iter::once(mask).chain(masked);
        all.clone().zip(all.skip(1)).any(|pair| pair == (first, second))
    };
    if !words(rows).zip(words(rows).skip(1)).any(|pair| pair == (first, second)) {
        return None;
    }
    // Each pair of words holds the salt under one mask at most: among more masks than pairs there is one without.
    (1..=rows.len() as u64)
        .find(|mask| !holds_salt(mask.wrapping_mul(ODD)))
        .map(|mask| mask.wrapping_mul(ODD))
}

/// Masks rows, or takes the mask away.
pub(crate) fn apply(mask: u64, rows: &mut [u8]) {
    let mask = mask.to_le_bytes();
    rows.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
}

fn halves(salt: Salt) -> [u64; 2] {
    let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| salt.0[at + n]));
    [half(0), half(8)]
}

/// The whole words of 64 bits.
fn words(rows: &[u8]) -> impl Iterator<Item = u64> + Clone + '_ {
    rows.chunks_exact(8).map(|word| u64::from_le_bytes(std::array::from_fn(|n| word[n])))
}

/// Makes masks differ in all of their bytes.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: Salt = Salt(*b"0123456789abcdef");

    fn holds_salt(bytes: &[u8]) -> bool {
        (0..bytes.len()).step_by(ALIGNMENT).any(|at| bytes[at..].starts_with(&SALT.0))
    }

    #[test]
    fn rows_without_the_salt_are_as_they_are() {
        for rows in [&b""[..], b"01234567", &SALT.0[..15], &[0; 4096]] {
            assert_eq!(needed(rows, SALT), None);
        }
        // Between the places where a record can begin nobody looks.
        assert_eq!(needed(&[b"x", &SALT.0[..], &[0; 7]].concat(), SALT), None);
    }

    #[test]
    fn masked_rows_hold_the_salt_nowhere_and_come_back() {
        // The salt, and what the first masks would make the salt of.
        let mut rows = SALT.0.to_vec();
        for mask in 1..=64u64 {
            let mut would_be = SALT.0.to_vec();
            apply(mask.wrapping_mul(ODD), &mut would_be);
            rows.extend(would_be);
        }
        rows.extend(b"tail");
        let mask = needed(&rows, SALT).unwrap();
        let mut masked = rows.clone();
        apply(mask, &mut masked);
        assert!(!holds_salt(&[&mask.to_le_bytes()[..], &masked].concat()) && masked != rows);
        apply(mask, &mut masked);
        assert_eq!(masked, rows);
    }
}
