//! Creation of tokens with the cell's key: `docs/protocol/rxkad.md` "9. Self-made tickets".

use afs_rpc::{EnvRef, Level, UnixTime};

use super::ticket::{TicketPart, make};
use super::{RxkadError, RxkadToken, SessionKey, TicketFormat};
use crate::Secret;
use crate::keys::{CellKey, KeyKind, KeyRing};

/// The end of signed 32-bit time: the latest that every server understands.
const END: u64 = 0x7fff_ffff;

/// Key type of the session keys made here: a DES key, used as it is.
const KEYTYPE: i32 = 1;

/// Properties of a new token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Minting {
    /// The components of the user's Kerberos name: `["alice"]`, `["alice", "admin"]`.
    pub client: Vec<String>,
    /// The user's realm. Never empty: without one, servers take `afs` for the cell itself.
    pub realm: String,
    /// Start of its validity.
    pub begins: UnixTime,
    /// Its expiry. Servers refuse more than 30 days.
    pub expires: UnixTime,
    /// Protection level of its connections.
    pub level: Level,
}

/// The token of `-localauth`: it states that its holder has the cell's key. `None` without a key of kind
/// `rxkad_krb5`.
#[must_use]
pub fn local_token(keys: &KeyRing, env: &EnvRef, level: Level) -> Option<RxkadToken> {
    let cell = TicketPart {
        flags: TicketPart::TRANSITED_POLICY_CHECKED,
        keytype: KEYTYPE,
        key: Secret::new(Vec::new()),
        realm: String::new(),
        client: vec!["afs".to_owned()],
        authtime: 0,
        starttime: None,
        endtime: END,
    };
    let token = printed(cell, keys.best(KeyKind::RxkadKrb5)?, env);
    token.ok().map(|token| token.with_level(level))
}

/// A token for a user, made with the cell's key and without a KDC.
///
/// # Errors
/// [`RxkadError::UnknownKey`] without a key of kind `rxkad_krb5`; [`RxkadError::BadTicket`] without a realm or a name.
pub fn mint(keys: &KeyRing, minting: &Minting, env: &EnvRef) -> Result<RxkadToken, RxkadError> {
    let named = minting.client.iter().any(|part| !part.is_empty());
    if minting.realm.is_empty() || !named {
        return Err(RxkadError::BadTicket);
    }
    let user = TicketPart {
        flags: TicketPart::TRANSITED_POLICY_CHECKED,
        keytype: KEYTYPE,
        key: Secret::new(Vec::new()),
        realm: minting.realm.clone(),
        client: minting.client.clone(),
        authtime: minting.begins.secs,
        starttime: Some(minting.begins.secs),
        endtime: minting.expires.secs,
    };
    let key = keys.best(KeyKind::RxkadKrb5).ok_or(RxkadError::UnknownKey)?;
    Ok(printed(user, key, env)?.with_level(minting.level))
}

/// With a new session key.
fn printed(part: TicketPart, key: &CellKey, env: &EnvRef) -> Result<RxkadToken, RxkadError> {
    let session_key = SessionKey::generate(env);
    let part = TicketPart { key: Secret::new(session_key.expose().to_vec()), ..part };
    let ticket = make(&part, key, env)?;
    let expires = Some(UnixTime { secs: part.endtime, nanos: 0 });
    RxkadToken::new(TicketFormat::EncryptedData, &ticket, session_key, expires)
}
