//! New keys.

use super::{CellKey, KeyError, KeyKind};
use crate::Random;
use crate::crypto::EncType;

/// A fresh random key for rxgk or `rxkad_krb5`, of any encryption type that [`EncType`] knows.
///
/// # Errors
/// [`KeyError::Enctype`] for any other encryption type, and for DES, with which nothing new is made.
pub fn generate(kind: KeyKind, enctype: i32, kvno: u32, random: &Random) -> Result<CellKey, KeyError> {
    let known = EncType::from_number(enctype).filter(|_| kind != KeyKind::RxkadDes);
    let secret = known.ok_or(KeyError::Enctype { kind, enctype })?.generate(random);
    Ok(CellKey { kind, kvno, enctype, secret })
}
