//! Derivation of an eight-byte key from any Kerberos key: `docs/protocol/rxkad.md` "7. Session key from non-DES
//! Kerberos keys".

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;

use super::des_key::{is_weak, with_odd_parity};

/// Purpose, a zero byte, and the length of the result in bits: the fixed part of each derivation.
const LABEL: &[u8] = b"rxkad\0\0\0\0\x40";

/// The session key that both ends derive from a Kerberos key. `None` only if no attempt yields a key that DES would
/// accept, which is practically impossible.
#[must_use]
pub fn derive(key: &[u8]) -> Option<[u8; 8]> {
    (1..=u8::MAX).find_map(|count| {
        let mut mac = <Hmac<Md5> as KeyInit>::new_from_slice(key).ok()?;
        mac.update(&[count]);
        mac.update(LABEL);
        let digest = mac.finalize().into_bytes();
        let key = with_odd_parity(*digest.first_chunk()?);
        (!is_weak(key)).then_some(key)
    })
}

/// A triple DES key without its parity bits: the eighth byte of each group is spread over the low bits of the other
/// seven. Bytes beyond the last whole group are ignored.
#[must_use]
pub fn compress_triple_des(key: &[u8]) -> Vec<u8> {
    let groups = key.as_chunks::<8>().0;
    groups.iter().flat_map(|group| compressed(*group)).collect()
}

fn compressed([head @ .., last]: [u8; 8]) -> [u8; 7] {
    let mut bits = last >> 1;
    head.map(|byte| {
        let low = bits & 1;
        bits >>= 1;
        byte & 0xfe | low
    })
}
