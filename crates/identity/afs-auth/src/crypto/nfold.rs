//! The n-fold function: RFC 3961 section 5.1.

/// Stretches or compresses `input` to `N` bytes: the input is repeated, each time rotated by 13 bits more, up to the
/// least common multiple of both lengths, and the pieces of `N` bytes are added in ones' complement.
pub(super) fn n_fold<const N: usize>(input: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    if input.is_empty() || N == 0 {
        return out;
    }
    let total = N / gcd(N, input.len()) * input.len();
    let mut carry = 0u32;
    for at in (0..total).rev() {
        carry += u32::from(out[at % N]) + u32::from(rotated(input, at));
        out[at % N] = carry as u8;
        carry >>= 8;
    }
    for byte in out.iter_mut().rev() {
        carry += u32::from(*byte);
        *byte = carry as u8;
        carry >>= 8;
    }
    out
}

/// Byte `at` of the input repeated, repetition `n` being rotated right by `13 n` bits.
fn rotated(input: &[u8], at: usize) -> u8 {
    let (bits, repetition) = (input.len() * 8, at / input.len());
    let start = (at % input.len()) * 8 + bits - 13 * repetition % bits;
    let byte = |index: usize| u16::from(input[index % input.len()]);
    let both = byte(start / 8) << 8 | byte(start / 8 + 1);
    (both >> (8 - start % 8)) as u8
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3961 appendix A.1.
    #[test]
    fn published_vectors() {
        assert_eq!(n_fold(b"012345"), 0xbe07_2631_276b_1955u64.to_be_bytes());
        assert_eq!(n_fold(b"password"), [0x78, 0xa0, 0x7b, 0x6c, 0xaf, 0x85, 0xfa]);
        assert_eq!(n_fold(b"Rough Consensus, and Running Code"), 0xbb6e_d308_70b7_f0e0u64.to_be_bytes());
        assert_eq!(n_fold(b"kerberos"), *b"kerberos");
        assert_eq!(n_fold::<16>(b"kerberos"), 0x6b65_7262_6572_6f73_7b9b_5b2b_9313_2b93u128.to_be_bytes());
        assert_eq!(
            n_fold::<21>(b"Q"),
            [
                0x51, 0x8a, 0x54, 0xa2, 0x15, 0xa8, 0x45, 0x2a, 0x51, 0x8a, 0x54, 0xa2, 0x15, 0xa8, 0x45,
                0x2a, 0x51, 0x8a, 0x54, 0xa2, 0x15
            ]
        );
    }
}
