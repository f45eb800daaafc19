//! Tokens that the holder of the cell's key makes for himself (`-localauth`): `docs/protocol/rxgk.md` "4. Tokens".

use afs_rpc::{EnvRef, Level};
use afs_rx::SecurityError;

use super::{Lifetime, MasterKey, RxgkTime, RxgkToken, TokenContents, Variant, code, seal_token};
use crate::crypto::EncType;
use crate::keys::{CellKey, KeyKind, KeyRing};

/// A token of the cell itself, whose holder may do everything. `None` without a key for rxgk that can be used.
#[must_use]
pub fn local_token(keys: &KeyRing, variant: Variant, level: Level, env: &EnvRef) -> Option<RxgkToken> {
    print(variant, keys.best(KeyKind::Rxgk)?, level, env).ok()
}

pub(super) fn print(
    variant: Variant,
    key: &CellKey,
    level: Level,
    env: &EnvRef,
) -> Result<RxgkToken, SecurityError> {
    let enctype = EncType::from_number(key.enctype).ok_or(code::BAD_ENCTYPE)?;
    let contents = TokenContents {
        key: MasterKey::new(key.enctype, enctype.generate(env))?,
        level,
        start: RxgkTime::NEVER,
        lifetime: Lifetime::USUAL,
        expires: RxgkTime::NEVER,
        identities: Vec::new(),
    };
    let sealed = seal_token(variant, &contents, key, env)?;
    Ok(RxgkToken::of_contents(variant, contents, sealed))
}
