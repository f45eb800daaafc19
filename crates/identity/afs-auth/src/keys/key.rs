//! One key of the cell, with its kind and version.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::Secret;

/// Purpose of a key. The number is the one in `KeyFileExt`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum KeyKind {
    /// 0: rxkad with a DES key, as in `KeyFile`. Its encryption type here is 0.
    RxkadDes,
    /// 1: rxgk.
    Rxgk,
    /// 2: rxkad with tickets in any other encryption type.
    RxkadKrb5,
}

impl KeyKind {
    /// The number in `KeyFileExt`.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            KeyKind::RxkadDes => 0,
            KeyKind::Rxgk => 1,
            KeyKind::RxkadKrb5 => 2,
        }
    }

    /// The kind with this number.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(KeyKind::RxkadDes),
            1 => Some(KeyKind::Rxgk),
            2 => Some(KeyKind::RxkadKrb5),
            _ => None,
        }
    }
}

/// In `asetkey`'s notation.
impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyKind::RxkadDes => "rxkad",
            KeyKind::Rxgk => "rxgk",
            KeyKind::RxkadKrb5 => "rxkad_krb5",
        })
    }
}

/// A key that the servers of a cell share, perhaps with a KDC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CellKey {
    /// Its purpose.
    pub kind: KeyKind,
    /// Its version number.
    pub kvno: u32,
    /// Encryption type of RFC 3961; 0 for [`KeyKind::RxkadDes`].
    pub enctype: i32,
    /// The key itself.
    pub secret: Secret,
}

impl CellKey {
    /// Tells the key from another one with the same numbers, and reveals nothing of a random key. Zeros for
    /// [`KeyKind::RxkadDes`], whose keys are too short for that.
    #[must_use]
    pub fn digest(&self) -> [u8; 16] {
        if self.kind == KeyKind::RxkadDes {
            return [0; 16];
        }
        let sum =
            Sha256::new().chain_update(b"andrew held key 1").chain_update(self.secret.expose()).finalize();
        std::array::from_fn(|at| sum[at])
    }
}
