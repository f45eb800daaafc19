//! Tokens for people.

use afs_rpc::{EnvRef, Level, Principal, UnixTime};

use super::{AuthName, Lifetime, MasterKey, RxgkTime, RxgkToken, TokenContents, Variant, seal_token};
use crate::crypto::EncType;
use crate::keys::{KeyKind, KeyRing};
use crate::names::{LocalNames, NameError};

/// What a new token shall say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Minting {
    /// One of the cell's own: `name` or `name.instance`.
    pub name: String,
    /// The level of every connection made with the token.
    pub level: Level,
    /// When it ends. There is no token for a person that does not end.
    pub expires: UnixTime,
    /// Encryption type of its key.
    pub enctype: EncType,
}

/// Why there is no token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MintError {
    /// The name cannot be in a token.
    #[error("no token can be made for this name: {0}")]
    Name(#[from] NameError),
    /// The name stands for the cell itself, or for somebody of another one.
    #[error("no token can be made for a name that is not one of the cell's own people")]
    Reserved,
    /// The expiry is the one that means never.
    #[error("a token for a person must end")]
    Endless,
    /// The cell has no key for rxgk.
    #[error("the cell has no rxgk key to seal a token with")]
    NoKey,
    /// A key's encryption type is not usable here.
    #[error("the encryption type cannot be used for rxgk")]
    EncType,
}

/// Makes a token for one of the cell's people, sealed with the cell's best key. It is for index 4.
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
    let contents = TokenContents {
        key,
        level: minting.level,
        start: RxgkTime::NEVER,
        lifetime: Lifetime::USUAL,
        expires,
        identities: vec![AuthName::krb4(&minting.name)],
    };
    let variant = Variant::OpenAfs;
    let sealed = seal_token(variant, &contents, cell_key, env).map_err(|_| MintError::EncType)?;
    Ok(RxgkToken::of_contents(variant, contents, sealed))
}

/// What a server will make of the name: it must be a person, as written, of this cell.
fn check_name(text: &str) -> Result<(), MintError> {
    if text.contains('@') {
        return Err(MintError::Reserved);
    }
    let (name, instance) = text.split_once('.').unwrap_or((text, ""));
    match LocalNames::default().principal(name, instance, "")? {
        Principal::Named { name, cell: None } if *name == *text => Ok(()),
        _ => Err(MintError::Reserved),
    }
}
