//! Key derivation: RFC 3961 section 5.1 for the SHA-1 types, RFC 8009 section 3 for the others.

use zeroize::Zeroizing;

use super::aes::{BLOCK, Encryptor};
use super::mac::HmacKey;
use super::nfold::n_fold;
use super::profile::Profile;
use super::{CryptoError, EncType};

/// Purpose of a derived key; the value ends the derivation's constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// Kc: checksum of unencrypted data.
    Checksum = 0x99,
    /// Ke: encryption.
    Encryption = 0xaa,
    /// Ki: checksum of encrypted data.
    Integrity = 0x55,
}

/// The key for one usage number and purpose.
pub(super) fn usage_key(
    enctype: EncType,
    key: &[u8],
    usage: u32,
    purpose: Purpose,
) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
    enctype.check_key(key)?;
    let profile = enctype.profile()?;
    let [a, b, c, d] = usage.to_be_bytes();
    let constant = [a, b, c, d, purpose as u8];
    let len = match purpose {
        Purpose::Encryption => key.len(),
        Purpose::Checksum | Purpose::Integrity => profile.mac_key_len(key.len()),
    };
    match profile {
        Profile::Sha1 => derived(key, &constant),
        Profile::Sha256 | Profile::Sha384 => labelled(profile, key, &constant, &[], len),
    }
}

/// DK: the folded constant encrypted repeatedly, as long as the key.
pub(super) fn derived(key: &[u8], constant: &[u8]) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
    let cipher = Encryptor::new(key)?;
    let mut block = Zeroizing::new(n_fold::<BLOCK>(constant));
    let mut out = Zeroizing::new(Vec::with_capacity(key.len()));
    while out.len() < key.len() {
        cipher.block(&mut block);
        out.extend_from_slice(&*block);
    }
    out.truncate(key.len());
    Ok(out)
}

/// KDF-HMAC-SHA2 of RFC 8009: one HMAC of a counter, a label, a context and the length in bits, truncated to `len`
/// bytes.
pub(super) fn labelled(
    profile: Profile,
    key: &[u8],
    label: &[u8],
    context: &[u8],
    len: usize,
) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
    let mut mac = HmacKey::new(profile, key)?;
    mac.update(&1u32.to_be_bytes());
    mac.update(label);
    mac.update(&[0]);
    mac.update(context);
    mac.update(&((len * 8) as u32).to_be_bytes());
    let mut out = Zeroizing::new(mac.finish());
    out.truncate(len);
    Ok(out)
}
