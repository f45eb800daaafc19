//! Hash function of names.

/// Chains of a directory.
pub(super) const BUCKETS: usize = 128;

/// A name's hash chain, 0 to 127. Source: `docs/protocol/directory.md` "2. Hash".
pub fn bucket(name: &[u8]) -> u8 {
    let hash = name.iter().fold(0u32, |hash, &c| hash.wrapping_mul(173).wrapping_add(c.into()));
    let low = (hash & 127) as u8;
    // The first implementation computed with signed numbers: a negative remainder counts from the other end.
    if low != 0 && hash >= 1 << 31 { 128 - low } else { low }
}

#[cfg(test)]
mod tests {
    use super::bucket;

    #[test]
    fn the_documented_check_values() {
        let values: [(&[u8], u8); 9] = [
            (b".", 46),
            (b"..", 68),
            (b"a", 97),
            (b"foo", 72),
            (b"hello.txt", 18),
            (b"Makefile", 98),
            (b"usr", 38),
            (b"0123456789abcdef", 110),
            (b"\xc3\xa9", 112),
        ];
        for (name, wanted) in values {
            assert_eq!(bucket(name), wanted, "{}", name.escape_ascii());
        }
    }
}
