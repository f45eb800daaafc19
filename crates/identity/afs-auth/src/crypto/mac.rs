//! HMAC with the hash of a profile, truncated to the profile's length.

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Sha256, Sha384};

use super::profile::Profile;
use super::{CryptoError, MIC_LEN_MAX};

/// HMAC with one key; the key's own blocks are hashed once.
#[derive(Clone)]
pub(super) enum HmacKey {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
    Sha384(Hmac<Sha384>),
}

/// A checksum.
#[derive(Clone, Copy)]
pub(super) struct Tag {
    bytes: [u8; MIC_LEN_MAX],
    len: usize,
}

impl Tag {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl HmacKey {
    pub(super) fn new(profile: Profile, key: &[u8]) -> Result<Self, CryptoError> {
        let bad = |_| CryptoError::KeyLength(key.len());
        match profile {
            Profile::Sha1 => Hmac::new_from_slice(key).map(Self::Sha1).map_err(bad),
            Profile::Sha256 => Hmac::new_from_slice(key).map(Self::Sha256).map_err(bad),
            Profile::Sha384 => Hmac::new_from_slice(key).map(Self::Sha384).map_err(bad),
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(mac) => mac.update(bytes),
            Self::Sha256(mac) => mac.update(bytes),
            Self::Sha384(mac) => mac.update(bytes),
        }
    }

    /// The full HMAC.
    pub(super) fn finish(self) -> Vec<u8> {
        match self {
            Self::Sha1(mac) => mac.finalize().into_bytes().to_vec(),
            Self::Sha256(mac) => mac.finalize().into_bytes().to_vec(),
            Self::Sha384(mac) => mac.finalize().into_bytes().to_vec(),
        }
    }

    /// The HMAC, truncated to the profile's checksum length.
    pub(super) fn tag(self) -> Tag {
        match self {
            Self::Sha1(mac) => cut(Profile::Sha1, &mac.finalize().into_bytes()),
            Self::Sha256(mac) => cut(Profile::Sha256, &mac.finalize().into_bytes()),
            Self::Sha384(mac) => cut(Profile::Sha384, &mac.finalize().into_bytes()),
        }
    }
}

fn cut(profile: Profile, whole: &[u8]) -> Tag {
    let mut tag = Tag { bytes: [0; MIC_LEN_MAX], len: profile.mac_len() };
    tag.bytes[..tag.len].copy_from_slice(&whole[..tag.len]);
    tag
}
