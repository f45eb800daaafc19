//! Key ring: all keys of a cell, by kind, number and encryption type.

use super::{CellKey, KeyError, KeyKind};

/// Encryption types of tickets made here, best first. Those that OpenAFS supports come first, because its servers may
/// share the key (`docs/protocol/rxkad.md` "9. Self-made tickets"); its last one, triple DES, is not supported here.
const RXKAD_ORDER: [i32; 5] = [18, 17, 20, 19, 23];

/// Encryption types of rxgk from worst to best, as far as they are supported here (`docs/protocol/rxgk.md` "4.
/// Tokens").
const RXGK_ORDER: [i32; 4] = [17, 19, 18, 20];

/// The keys of a cell, at most one for each kind, number and encryption type, in this order.
///
/// A *coming* key opens what other servers have sealed with it, and seals nothing here: it is used when every server of
/// the cell has it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyRing {
    used: Vec<CellKey>,
    coming: Vec<CellKey>,
}

impl KeyRing {
    /// Most keys in a ring.
    pub const KEYS_MAX: usize = 256;

    /// Longest key, in bytes.
    pub const KEY_LEN_MAX: usize = 64;

    /// The keys that are used, ordered by kind, number and encryption type.
    pub fn iter(&self) -> impl Iterator<Item = &CellKey> {
        self.used.iter()
    }

    /// The coming keys, in the same order.
    pub fn coming(&self) -> impl Iterator<Item = &CellKey> {
        self.coming.iter()
    }

    /// The coming keys as a ring of their own, in which they are used.
    #[must_use]
    pub fn coming_alone(&self) -> Self {
        Self { used: self.coming.clone(), coming: Vec::new() }
    }

    /// True without any key that is used.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// The key with exactly these numbers, used or coming.
    #[must_use]
    pub fn find(&self, kind: KeyKind, kvno: u32, enctype: i32) -> Option<&CellKey> {
        let wanted = (kind, kvno, enctype);
        [&self.used, &self.coming]
            .into_iter()
            .find_map(|keys| keys.binary_search_by_key(&wanted, identifier).ok().and_then(|at| keys.get(at)))
    }

    /// The key to make a new token with, among the supported ones. For rxgk the highest number, and of those the best
    /// encryption type; for `rxkad_krb5` the best encryption type, and of those the highest number; for DES the
    /// highest number.
    #[must_use]
    pub fn best(&self, kind: KeyKind) -> Option<&CellKey> {
        let keys = self.used.iter().filter(|key| key.kind == kind);
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

    /// The highest number of a kind, whatever the encryption type: a new key gets the next.
    #[must_use]
    pub fn latest(&self, kind: KeyKind) -> Option<u32> {
        self.used.iter().chain(&self.coming).filter(|key| key.kind == kind).map(|key| key.kvno).max()
    }

    /// Adds a key to those that are used. An identical one is left unchanged; a coming one is used from then on.
    ///
    /// # Errors
    /// [`KeyError::Length`]; [`KeyError::TooMany`]; [`KeyError::Twice`] when another key has its numbers.
    pub fn add(&mut self, key: CellKey) -> Result<(), KeyError> {
        if self.is_there(&key)? {
            self.use_coming(|other| identifier(other) == identifier(&key));
            return Ok(());
        }
        insert(&mut self.used, key);
        Ok(())
    }

    /// Adds a key to the coming ones. One that is used already is left unchanged.
    ///
    /// # Errors
    /// As for [`KeyRing::add`].
    pub fn add_coming(&mut self, key: CellKey) -> Result<(), KeyError> {
        if !self.is_there(&key)? {
            insert(&mut self.coming, key);
        }
        Ok(())
    }

    /// Makes coming keys used.
    pub fn use_coming(&mut self, which: impl Fn(&CellKey) -> bool) {
        let (now, later) = std::mem::take(&mut self.coming).into_iter().partition(which);
        self.coming = later;
        let now: Vec<CellKey> = now;
        now.into_iter().for_each(|key| insert(&mut self.used, key));
    }

    /// Removes coming keys.
    pub fn drop_coming(&mut self, which: impl Fn(&CellKey) -> bool) {
        self.coming.retain(|key| !which(key));
    }

    fn is_there(&self, key: &CellKey) -> Result<bool, KeyError> {
        check_len(key)?;
        let (kind, kvno, enctype) = identifier(key);
        match self.find(kind, kvno, enctype) {
            Some(there) if there == key => Ok(true),
            Some(_) => Err(KeyError::Twice { kind, kvno, enctype }),
            None if self.used.len() + self.coming.len() >= Self::KEYS_MAX => Err(KeyError::TooMany),
            None => Ok(false),
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

    /// Removes a key that is used. False if there is none.
    pub fn remove(&mut self, kind: KeyKind, kvno: u32, enctype: i32) -> bool {
        let before = self.used.len();
        self.used.retain(|key| identifier(key) != (kind, kvno, enctype));
        self.used.len() != before
    }
}

/// Adds a key whose numbers none has.
fn insert(keys: &mut Vec<CellKey>, key: CellKey) {
    let at = keys.partition_point(|other| identifier(other) < identifier(&key));
    keys.insert(at, key);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;

    fn key(kvno: u32, byte: u8) -> CellKey {
        CellKey { kind: KeyKind::Rxgk, kvno, enctype: 20, secret: Secret::new(vec![byte; 32]) }
    }

    fn numbers<'a>(keys: impl Iterator<Item = &'a CellKey>) -> Vec<u32> {
        keys.map(|key| key.kvno).collect()
    }

    #[test]
    fn a_coming_key_opens_and_does_not_seal_until_it_is_used() {
        let mut ring = KeyRing::default();
        ring.add(key(1, 1)).unwrap();
        ring.add_coming(key(2, 2)).unwrap();
        ring.add_coming(key(2, 2)).unwrap();
        assert_eq!(
            ring.add_coming(key(2, 3)),
            Err(KeyError::Twice { kind: KeyKind::Rxgk, kvno: 2, enctype: 20 })
        );
        assert_eq!((numbers(ring.iter()), numbers(ring.coming())), (vec![1], vec![2]));
        assert_eq!((ring.best(KeyKind::Rxgk).unwrap().kvno, ring.latest(KeyKind::Rxgk)), (1, Some(2)));
        assert_eq!(ring.find(KeyKind::Rxgk, 2, 20), Some(&key(2, 2)));
        assert_eq!(
            KeyRing::from_key_file_ext(ring.to_key_file_ext().expose()).unwrap().latest(KeyKind::Rxgk),
            Some(1)
        );
        ring.use_coming(|key| key.kvno == 2);
        assert_eq!((numbers(ring.iter()), numbers(ring.coming())), (vec![1, 2], vec![]));
        assert_eq!(ring.best(KeyKind::Rxgk).unwrap().kvno, 2);
        ring.add_coming(key(1, 1)).unwrap();
        assert_eq!(numbers(ring.coming()), [], "it is used already");
        ring.add_coming(key(3, 3)).unwrap();
        ring.drop_coming(|key| key.kvno == 3);
        assert_eq!(ring.find(KeyKind::Rxgk, 3, 20), None);
        ring.add_coming(key(4, 4)).unwrap();
        ring.add(key(4, 4)).unwrap();
        assert_eq!((numbers(ring.iter()), numbers(ring.coming())), (vec![1, 2, 4], vec![]));
    }
}
