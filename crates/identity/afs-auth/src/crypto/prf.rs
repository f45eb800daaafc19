//! The pseudo-random function of an encryption type, and its extension PRF+ of RFC 4402.

use sha1::{Digest, Sha1};
use zeroize::Zeroizing;

use super::aes::{BLOCK, Encryptor};
use super::derive::{derived, labelled};
use super::profile::Profile;
use super::{CryptoError, EncType};

/// PRF: 16 bytes for 17 and 18, 32 for 19, 48 for 20.
///
/// # Errors
/// [`CryptoError::KeyLength`], [`CryptoError::Unsupported`].
pub fn prf(enctype: EncType, key: &[u8], input: &[u8]) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
    enctype.check_key(key)?;
    match enctype.profile()? {
        Profile::Sha1 => prf_of_rfc_3962(key, input),
        Profile::Sha256 => labelled(Profile::Sha256, key, b"prf", input, 32),
        Profile::Sha384 => labelled(Profile::Sha384, key, b"prf", input, 48),
    }
}

fn prf_of_rfc_3962(key: &[u8], input: &[u8]) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
    let digest = Sha1::digest(input);
    let mut block = Zeroizing::new([0; BLOCK]);
    block.copy_from_slice(&digest[..BLOCK]);
    Encryptor::new(&derived(key, b"prf")?)?.block(&mut block);
    Ok(Zeroizing::new(block.to_vec()))
}

/// PRF+: `len` bytes of PRF(1 || seed), PRF(2 || seed) and so on, the counter having four bytes.
///
/// # Errors
/// As for [`prf`].
pub fn prf_plus(
    enctype: EncType,
    key: &[u8],
    seed: &[u8],
    len: usize,
) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
    let mut out = Zeroizing::new(Vec::with_capacity(len + 48));
    for counter in 1u32.. {
        if out.len() >= len {
            break;
        }
        let input = [&counter.to_be_bytes()[..], seed].concat();
        out.extend_from_slice(&prf(enctype, key, &input)?);
    }
    out.truncate(len);
    Ok(out)
}
