//! Key ring: all keys of a cell, by kind, number and encryption type.

use super::{CellKey, KeyError, KeyKind};

/// Encryption types of tickets made here, best first. Those that OpenAFS supports come first, because its servers may
/// share the key (`docs/protocol/rxkad.md` "9. Self-made tickets"); its last one, triple DES, is not supported here.
const RXKAD_ORDER: [i32; 5] = [18, 17, 20, 19, 23];

/// Encryption types of rxgk from worst to best, as far as they are supported here (`docs/protocol/rxgk.md` "4.
/// Tokens").
const RXGK_ORDER: [i32; 4] = [17, 19, 18, 20];

/// The keys of a cell, at most one for each kind, number and encryption type, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyRing(Vec<CellKey>);

impl KeyRing {
    /// Most keys in a ring.
    pub const KEYS_MAX: usize = 256;

    /// Longest key, in bytes.
    pub const KEY_LEN_MAX: usize = 64;

    /// All keys, ordered by kind, number and encryption type.
    pub fn iter(&self) -> impl Iterator<Item = &CellKey> {
        self.0.iter()
    }

    /// True without any key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key with exactly these numbers.
    #[must_use]
    pub fn find(&self, kind: KeyKind, kvno: u32, enctype: i32) -> Option<&CellKey> {
        let at = self.0.binary_search_by_key(&(kind, kvno, enctype), identifier).ok()?;
        self.0.get(at)
    }

    /// The key to make a new token with, among the supported ones. For rxgk the highest number, and of those the best
    /// encryption type; for `rxkad_krb5` the best encryption type, and of those the highest number; for DES the
    /// highest number.
    #[must_use]
    pub fn best(&self, kind: KeyKind) -> Option<&CellKey> {
        let keys = self.0.iter().filter(|key| key.kind == kind);
        match kind {
            KeyKind::RxkadDes => keys.max_by_key(|key| key.kvno),
            KeyKind::Rxgk => {
                let usable = keys.filter(|key| RXGK_ORDER.contains(&key.enctype));
                usable.max_by_key(|key| (key.kvno, position(&RXGK_ORDER, key.enctype)))
            }
            KeyKind::RxkadKrb5 => {
                let usable = keys.filter(|key| RXKAD_ORDER.contains(&key.enctype));
                usable.min_by_key(|key| (position(&RXKAD_ORDER, key.enctype), u32::MAX - key.kvno))
            }
        }
    }

    /// The highest number in use for a kind, whatever the encryption type: a new key gets the next.
    #[must_use]
    pub fn latest(&self, kind: KeyKind) -> Option<u32> {
        self.0.iter().filter(|key| key.kind == kind).map(|key| key.kvno).max()
    }

    /// Adds a key. An identical one is left unchanged.
    ///
    /// # Errors
    /// [`KeyError::Length`]; [`KeyError::TooMany`]; [`KeyError::Twice`] when another key has its numbers.
    pub fn add(&mut self, key: CellKey) -> Result<(), KeyError> {
        check_len(&key)?;
        match self.0.binary_search_by_key(&identifier(&key), identifier) {
            Ok(at) if self.0.get(at) == Some(&key) => Ok(()),
            Ok(_) => Err(KeyError::Twice { kind: key.kind, kvno: key.kvno, enctype: key.enctype }),
            Err(_) if self.0.len() >= Self::KEYS_MAX => Err(KeyError::TooMany),
            Err(at) => {
                self.0.insert(at, key);
                Ok(())
            }
        }
    }

    /// Adds every key of `other`, or none.
    ///
    /// # Errors
    /// As for [`KeyRing::add`].
    pub fn merge(&mut self, other: &KeyRing) -> Result<(), KeyError> {
        let mut all = self.clone();
        other.iter().try_for_each(|key| all.add(key.clone()))?;
        *self = all;
        Ok(())
    }

    /// Removes a key. False if there is none.
    pub fn remove(&mut self, kind: KeyKind, kvno: u32, enctype: i32) -> bool {
        let before = self.0.len();
        self.0.retain(|key| identifier(key) != (kind, kvno, enctype));
        self.0.len() != before
    }
}

fn identifier(key: &CellKey) -> (KeyKind, u32, i32) {
    (key.kind, key.kvno, key.enctype)
}

/// Position in an order of preference.
fn position(order: &[i32], enctype: i32) -> Option<usize> {
    order.iter().position(|known| *known == enctype)
}

fn check_len(key: &CellKey) -> Result<(), KeyError> {
    let len = key.secret.expose().len();
    let right = match key.kind {
        KeyKind::RxkadDes => len == 8,
        KeyKind::Rxgk | KeyKind::RxkadKrb5 => (1..=KeyRing::KEY_LEN_MAX).contains(&len),
    };
    if right { Ok(()) } else { Err(KeyError::Length(len)) }
}
