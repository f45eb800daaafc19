//! Keys of a cache, derived from that of its user.

use std::fmt;

use afs_wire::ids::CellName;
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::sealing::Sealing;
use super::sectors::SectorCipher;

/// Bytes of the salt of a cache: two caches of a user have no key in common.
pub(in crate::cache) const SALT_LEN: usize = 16;
/// Bytes of the value by which a key is known to be that of a cache.
pub(in crate::cache) const CHECK_LEN: usize = 16;

/// A user's key for encrypted caches, and whose it is.
#[derive(Clone)]
pub struct CacheSecret {
    cell: CellName,
    user: String,
    key: Zeroizing<[u8; 32]>,
    fresh_salt: [u8; SALT_LEN],
}

impl CacheSecret {
    /// The key of a user, by name, in a cell. `fresh_salt` are random bytes for a cache that is new.
    #[must_use]
    pub fn new(cell: CellName, user: String, key: [u8; 32], fresh_salt: [u8; 16]) -> Self {
        Self { cell, user, key: Zeroizing::new(key), fresh_salt }
    }

    pub(in crate::cache) fn cell(&self) -> &CellName {
        &self.cell
    }

    pub(in crate::cache) fn user(&self) -> &str {
        &self.user
    }

    pub(in crate::cache) fn fresh_salt(&self) -> [u8; SALT_LEN] {
        self.fresh_salt
    }

    /// The keys of the cache with this salt.
    pub(in crate::cache) fn cipher(&self, salt: &[u8; SALT_LEN]) -> CacheCipher {
        CacheCipher(Hkdf::new(Some(salt), &*self.key))
    }
}

impl fmt::Debug for CacheSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CacheSecret({} in {})", self.user, self.cell)
    }
}

/// The keys of one cache.
pub(in crate::cache) struct CacheCipher(Hkdf<Sha256>);

impl CacheCipher {
    /// What the cache's file `key` has of the key: it tells nothing of the others.
    pub fn check(&self) -> [u8; CHECK_LEN] {
        *self.derive(b"andrew cache check 1", &[])
    }

    /// The cipher of a file.
    pub fn file(&self, number: u64) -> SectorCipher {
        let key: Zeroizing<[u8; 64]> = self.derive(b"andrew cache file 1", &number.to_be_bytes());
        let (data, tweak) = key.split_at(32);
        SectorCipher::new(data, tweak)
    }

    /// The sealing of the records.
    pub fn records(&self) -> Sealing {
        Sealing::with(self.derive(b"andrew cache records 1", &[]), self.derive(b"andrew cache nonces 1", &[]))
    }

    fn derive<const N: usize>(&self, label: &[u8], of: &[u8]) -> Zeroizing<[u8; N]> {
        let mut key = Zeroizing::new([0; N]);
        if self.0.expand_multi_info(&[label, of], key.as_mut_slice()).is_err() {
            unreachable!("keys are shorter than 255 hashes");
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(key: u8) -> CacheSecret {
        CacheSecret::new(CellName::new("example.org").unwrap(), "alice".into(), [key; 32], [9; SALT_LEN])
    }

    #[test]
    fn each_key_salt_and_file_has_its_own_keys_and_none_is_shown() {
        let one = secret(1).cipher(&[1; SALT_LEN]);
        assert_eq!(one.check(), secret(1).cipher(&[1; SALT_LEN]).check());
        assert_ne!(one.check(), secret(1).cipher(&[2; SALT_LEN]).check());
        assert_ne!(one.check(), secret(2).cipher(&[1; SALT_LEN]).check());
        let of = |number| {
            let mut data = vec![7; SECTOR as usize];
            one.file(number).encrypt(0, &mut data);
            data
        };
        assert!(of(1) == of(1) && of(1) != of(2));
        assert_eq!(format!("{:?}", secret(1)), "CacheSecret(alice in example.org)");
    }

    use super::super::SECTOR;
}
