//! Sealing of records: XChaCha20-Poly1305 with a nonce made of the record itself (HMAC-SHA-256), so that none is used for two.
//!
//! ```text
//! sealed    229u8, nonce (24 bytes), cipher text, tag (16 bytes); its kind is authenticated with it
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

/// First byte of a sealed record: no other record begins with it.
pub(in crate::cache) const SEALED: u8 = 229;
const NONCE_LEN: usize = 24;

/// Sorts of records, none of which is taken for one of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::cache) enum RecordKind {
    Index = 1,
    Pins = 2,
    Unsaved = 3,
}

/// How the records of a cache are written: as they are, or sealed.
#[derive(Clone, Default)]
pub(in crate::cache) enum Sealing {
    #[default]
    Plain,
    Sealed(Arc<Keys>),
}

pub(in crate::cache) struct Keys {
    cipher: XChaCha20Poly1305,
    nonces: Zeroizing<[u8; 32]>,
}

impl Sealing {
    pub(super) fn with(key: Zeroizing<[u8; 32]>, nonces: Zeroizing<[u8; 32]>) -> Self {
        Self::Sealed(Arc::new(Keys { cipher: XChaCha20Poly1305::new((&*key).into()), nonces }))
    }

    /// The bytes to write for a record.
    pub fn seal(&self, kind: RecordKind, record: Vec<u8>) -> Vec<u8> {
        let Self::Sealed(keys) = self else { return record };
        let nonce = keys.nonce(kind, &record);
        let sealed = keys.cipher.encrypt(XNonce::from_slice(&nonce), payload(kind, &record));
        // The cipher refuses only more than 256 GiB.
        [&[SEALED], nonce.as_slice(), &sealed.unwrap_or_default()].concat()
    }

    /// The record of these bytes; `None` if they were not sealed with these keys and this kind.
    pub fn open<'a>(&self, kind: RecordKind, bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let Self::Sealed(keys) = self else { return Some(Cow::Borrowed(bytes)) };
        let (nonce, sealed) = bytes.strip_prefix(&[SEALED])?.split_first_chunk::<NONCE_LEN>()?;
        keys.cipher.decrypt(XNonce::from_slice(nonce), payload(kind, sealed)).ok().map(Cow::Owned)
    }
}

impl Keys {
    /// HMAC-SHA-256, which is the first step of HKDF.
    fn nonce(&self, kind: RecordKind, record: &[u8]) -> [u8; NONCE_LEN] {
        let (mac, _) = Hkdf::<Sha256>::extract(Some(&*self.nonces), &[&[kind as u8], record].concat());
        let mut nonce = [0; NONCE_LEN];
        nonce.iter_mut().zip(mac).for_each(|(to, byte)| *to = byte);
        nonce
    }
}

fn payload(kind: RecordKind, msg: &[u8]) -> Payload<'_, '_> {
    let about: &[u8] = match kind {
        RecordKind::Index => b"index",
        RecordKind::Pins => b"pins",
        RecordKind::Unsaved => b"unsaved",
    };
    Payload { msg, aad: about }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_opens_with_its_key_and_as_its_kind_or_not_at_all() {
        let keys = |key: u8| Sealing::with(Zeroizing::new([key; 32]), Zeroizing::new([key + 1; 32]));
        let record = b"the name of a file that is secret".to_vec();
        let sealed = keys(1).seal(RecordKind::Index, record.clone());
        assert!(!sealed.windows(8).any(|part| record.windows(8).any(|plain| plain == part)));
        assert_eq!(keys(1).open(RecordKind::Index, &sealed).as_deref(), Some(record.as_slice()));
        assert_eq!(keys(1).open(RecordKind::Pins, &sealed), None);
        assert_eq!(keys(2).open(RecordKind::Index, &sealed), None);
        assert_eq!(
            keys(1).open(RecordKind::Index, &record),
            None,
            "a plain one is not taken for a sealed one"
        );
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert_eq!(keys(1).open(RecordKind::Index, &damaged), None, "{at}");
            assert_eq!(keys(1).open(RecordKind::Index, &sealed[..at]), None, "{at}");
        }
        assert_eq!(Sealing::Plain.seal(RecordKind::Index, record.clone()), record);
    }
}
