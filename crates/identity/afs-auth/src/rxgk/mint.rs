//! Creation of tokens for users.

use afs_rpc::{EnvRef, Level, Principal, Terms, UnixTime};

use super::suspended;
use super::{AuthName, Lifetime, MasterKey, RxgkTime, RxgkToken, TokenContents, Variant, seal_token};
use crate::crypto::EncType;
use crate::keys::{KeyKind, KeyRing};
use crate::names::{LocalNames, NameError};

/// Properties of a new token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Minting {
    /// A user of the cell: `name` or `name.instance`.
    pub name: String,
    /// What it says besides; no groups for others' servers, which refuse such a token.
    pub terms: Terms,
    /// The level of every connection made with the token.
    pub level: Level,
    /// When it expires. A user's token always expires.
    pub expires: UnixTime,
    /// Encryption type of its key.
    pub enctype: EncType,
}

/// Why no token was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MintError {
    /// The name cannot be in a token.
    #[error("no token can be made for this name: {0}")]
    Name(#[from] NameError),
    /// The name is that of the cell itself, or of a user of another cell.
    #[error("no token can be made for a name that is not one of the cell's own people")]
    Reserved,
    /// The expiry is the value that means never.
    #[error("a token for a person must end")]
    Endless,
    /// The cell has no key for rxgk.
    #[error("the cell has no rxgk key to seal a token with")]
    NoKey,
    /// A key's encryption type is not supported.
    #[error("the encryption type cannot be used for rxgk")]
    EncType,
}

/// Makes a token for a user of the cell, sealed with the cell's best key. It is for index 4.
///
/// # Errors
/// [`MintError`].
pub fn mint(keys: &KeyRing, minting: &Minting, env: &EnvRef) -> Result<RxgkToken, MintError> {
    check_name(&minting.name)?;
    let expires = RxgkTime::from(minting.expires);
    if expires == RxgkTime::NEVER {
        return Err(MintError::Endless);
    }
    let cell_key = keys.best(KeyKind::Rxgk).ok_or(MintError::NoKey)?;
    let secret = minting.enctype.generate(env);
    let key = MasterKey::new(minting.enctype.number(), secret).map_err(|_| MintError::EncType)?;
    let left_out = suspended::identity(&minting.terms.suspended);
    let contents = TokenContents {
        key,
        level: minting.level,
        start: RxgkTime::NEVER,
        lifetime: Lifetime::USUAL,
        expires,
        identities: [AuthName::of_user(&minting.name, minting.terms.generation)]
            .into_iter()
            .chain(left_out)
            .collect(),
    };
    let variant = Variant::OpenAfs;
    let sealed = seal_token(variant, &contents, cell_key, env).map_err(|_| MintError::EncType)?;
    Ok(RxgkToken::of_contents(variant, contents, sealed))
}

/// The name must be parsed by servers as a user, unchanged, of this cell.
fn check_name(text: &str) -> Result<(), MintError> {
    if text.contains('@') {
        return Err(MintError::Reserved);
    }
    let (name, instance) = text.split_once('.').unwrap_or((text, ""));
    match LocalNames::default().principal(name, instance, "")? {
        Principal::Named { name, cell: None, .. } if *name == *text => Ok(()),
        _ => Err(MintError::Reserved),
    }
}
