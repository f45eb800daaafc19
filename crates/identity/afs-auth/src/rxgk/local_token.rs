//! Token of the cell itself, made with the cell's key (`-localauth`): `docs/protocol/rxgk.md` "4. Tokens".

use afs_rpc::{EnvRef, Level};
use afs_rx::SecurityError;

use super::{Lifetime, MasterKey, RxgkTime, RxgkToken, TokenContents, Variant, code, seal_token};
use crate::crypto::EncType;
use crate::keys::{CellKey, KeyKind, KeyRing};

/// A token of the cell itself, whose holder has all rights. `None` without a usable key for rxgk.
#[must_use]
pub fn local_token(keys: &KeyRing, variant: Variant, level: Level, env: &EnvRef) -> Option<RxgkToken> {
    make_token(variant, keys.best(KeyKind::Rxgk)?, level, env).ok()
}

/// Such a token for each number of a used key for rxgk, the highest first: a server that was away may know an earlier one
/// alone.
#[must_use]
pub fn local_tokens(keys: &KeyRing, variant: Variant, level: Level, env: &EnvRef) -> Vec<RxgkToken> {
    let (mut left, mut tokens) = (keys.clone(), Vec::new());
    while let Some(key) = left.best(KeyKind::Rxgk).cloned() {
        tokens.extend(make_token(variant, &key, level, env));
        let of_number = keys.iter().filter(|other| other.kvno == key.kvno);
        of_number.for_each(|other| _ = left.remove(KeyKind::Rxgk, other.kvno, other.enctype));
    }
    tokens
}

pub(super) fn make_token(
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
