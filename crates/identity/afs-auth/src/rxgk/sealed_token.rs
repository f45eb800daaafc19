//! Sealing and opening of tokens with a key of the cell.

use afs_rpc::EnvRef;
use afs_rx::SecurityError;
use afs_wire::xdr::{Encode, Reader};
use zeroize::Zeroizing;

use super::wire::{TOKEN_MAX, put_opaque};
use super::{TokenContents, Variant, code, usage};
use crate::crypto::EncType;
use crate::keys::{CellKey, KeyKind, KeyRing};

/// Seals a token with a key of the cell.
///
/// # Errors
/// [`code::BAD_ENCTYPE`] or [`code::INCONSISTENCY`] for a key that cannot be used.
pub fn seal_token(
    variant: Variant,
    contents: &TokenContents,
    key: &CellKey,
    env: &EnvRef,
) -> Result<Vec<u8>, SecurityError> {
    let enctype = EncType::from_number(key.enctype).ok_or(code::BAD_ENCTYPE)?;
    let plain = contents.encode(variant);
    let sealed = enctype.encrypt(key.secret.expose(), usage::SERVER_ENC_TOKEN, &plain, env);
    let mut out = Vec::new();
    key.kvno.encode(&mut out);
    key.enctype.encode(&mut out);
    put_opaque(&sealed.map_err(code::of)?, &mut out);
    Ok(out)
}

/// Opens a token with the key of the cell that it names. The caller must check its expiry.
///
/// # Errors
/// [`code::BAD_TOKEN`], [`code::NO_SUCH_KEY`], [`code::SEALED_INCONSISTENT`], and [`code::BAD_ENCTYPE`] or
/// [`code::BAD_LEVEL`] for a valid token with an unknown type or level.
pub fn open_token(variant: Variant, token: &[u8], keys: &KeyRing) -> Result<TokenContents, SecurityError> {
    let mut reader = Reader::new(token);
    let (kvno, enctype, sealed) = container(&mut reader).ok_or(code::BAD_TOKEN)?;
    let key = keys.find(KeyKind::Rxgk, kvno, enctype).ok_or(code::NO_SUCH_KEY)?;
    let enctype = EncType::from_number(enctype).ok_or(code::BAD_ENCTYPE)?;
    let plain = enctype.decrypt(key.secret.expose(), usage::SERVER_ENC_TOKEN, sealed);
    let plain = Zeroizing::new(plain.map_err(|_| code::SEALED_INCONSISTENT)?);
    TokenContents::decode(variant, &plain)
}

fn container<'a>(reader: &mut Reader<'a>) -> Option<(u32, i32, &'a [u8])> {
    let kvno = u32::try_from(reader.i32().ok()?).ok().filter(|kvno| *kvno > 0)?;
    let enctype = reader.i32().ok().filter(|enctype| *enctype > 0)?;
    let sealed = reader.opaque(TOKEN_MAX).ok()?;
    reader.finish().ok()?;
    Some((kvno, enctype, sealed))
}
