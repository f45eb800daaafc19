//! Encryption type rc4-hmac of Windows: RFC 4757. Old Kerberos tickets may still use it.

use afs_rpc::EnvRef;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use zeroize::{Zeroize, Zeroizing};

use super::{CryptoError, equal_in_constant_time};

const TAG: usize = 16;
const CONFOUNDER: usize = 8;

/// The checksum, then confounder and text, encrypted.
pub(super) fn encrypt(key: &[u8], usage: u32, plain: &[u8], env: &EnvRef) -> Vec<u8> {
    let mut message = vec![0; TAG + CONFOUNDER];
    env.random(&mut message[TAG..]);
    message.extend_from_slice(plain);
    let (tag, text) = message.split_at_mut(TAG);
    let signing = signing_key(key, usage);
    tag.copy_from_slice(&*hmac_md5(&*signing, text));
    Rc4::new(&*hmac_md5(&*signing, tag)).apply(text);
    message
}

pub(super) fn decrypt(key: &[u8], usage: u32, cipher: &[u8]) -> Result<Vec<u8>, CryptoError> {
    let (tag, text) = cipher.split_at_checked(TAG).ok_or(CryptoError::Short)?;
    if text.len() < CONFOUNDER {
        return Err(CryptoError::Short);
    }
    let mut text = text.to_vec();
    let signing = signing_key(key, usage);
    Rc4::new(&*hmac_md5(&*signing, tag)).apply(&mut text);
    if !equal_in_constant_time(&*hmac_md5(&*signing, &text), tag) {
        text.zeroize();
        return Err(CryptoError::Integrity);
    }
    text.drain(..CONFOUNDER);
    Ok(text)
}

fn signing_key(key: &[u8], usage: u32) -> Zeroizing<[u8; TAG]> {
    // RFC 4757 section 3: these usages have the numbers of older ones.
    let usage = match usage {
        3 | 9 => 8,
        23 => 13,
        other => other,
    };
    hmac_md5(key, &usage.to_le_bytes())
}

fn hmac_md5(key: &[u8], message: &[u8]) -> Zeroizing<[u8; TAG]> {
    // HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<Md5>::new_from_slice(key) else { return Zeroizing::new([0; TAG]) };
    mac.update(message);
    Zeroizing::new(mac.finalize().into_bytes().into())
}

/// The stream cipher.
struct Rc4 {
    state: Zeroizing<[u8; 256]>,
    i: u8,
    j: u8,
}

impl Rc4 {
    fn new(key: &[u8]) -> Self {
        let mut state = Zeroizing::new([0; 256]);
        (0..=255).zip(state.iter_mut()).for_each(|(number, byte)| *byte = number);
        let mut j = 0u8;
        for (i, key_byte) in (0..256).zip(key.iter().cycle()) {
            j = j.wrapping_add(state[i]).wrapping_add(*key_byte);
            state.swap(i, usize::from(j));
        }
        Self { state, i: 0, j: 0 }
    }

    fn apply(mut self, data: &mut [u8]) {
        for byte in data {
            self.i = self.i.wrapping_add(1);
            let (i, a) = (usize::from(self.i), self.state[usize::from(self.i)]);
            self.j = self.j.wrapping_add(a);
            let b = self.state[usize::from(self.j)];
            self.state.swap(i, usize::from(self.j));
            *byte ^= self.state[usize::from(a.wrapping_add(b))];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The widely published vectors of the stream cipher.
    #[test]
    fn stream_vectors() {
        let mut text = *b"Plaintext";
        Rc4::new(b"Key").apply(&mut text);
        assert_eq!(text, [0xbb, 0xf3, 0x16, 0xe8, 0xd9, 0x40, 0xaf, 0x0a, 0xd3]);
        let mut text = *b"pedia";
        Rc4::new(b"Wiki").apply(&mut text);
        assert_eq!(text, [0x10, 0x21, 0xbf, 0x04, 0x20]);
    }
}
