//! Generation of cell keys.

use afs_rpc::EnvRef;

use super::{CellKey, KeyError, KeyKind};
use crate::crypto::EncType;

/// A fresh random key for rxgk or `rxkad_krb5`, of any encryption type that [`EncType`] knows.
///
/// # Errors
/// [`KeyError::Enctype`] for any other encryption type, and for DES, with which nothing new is made.
pub fn generate(kind: KeyKind, enctype: i32, kvno: u32, env: &EnvRef) -> Result<CellKey, KeyError> {
    let known = EncType::from_number(enctype).filter(|_| kind != KeyKind::RxkadDes);
    let secret = known.ok_or(KeyError::Enctype { kind, enctype })?.generate(env);
    Ok(CellKey { kind, kvno, enctype, secret })
}
