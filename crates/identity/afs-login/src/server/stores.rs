//! Interfaces of the login service to its stores: records, users, keys.

use std::fmt;

use afs_auth::Token;
use afs_auth::crypto::EncType;
use afs_auth::keys::SharedKeys;
use afs_auth::rxgk::{self, Minting};
use afs_rpc::{BoxFuture, EnvRef, Level, Terms, TokenGeneration, UnixTime};
use afs_wire::ids::ViceId;

use crate::user::UserName;

/// Why an operation of a store failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// The store is shared by several servers, and this one reaches no majority of them: another may.
    #[error("the servers that keep the records have no quorum")]
    NoQuorum,
    /// Anything else; the text is for the log.
    #[error("{0}")]
    Failed(String),
}

/// Opaque records of users, by user and kind. A kind is at most 68 bytes of ASCII, a record at most 4 KiB; a user has
/// at most 35 records. Changes by `put` and `delete` are durable when the calls complete.
pub trait LoginStore: Send + Sync + 'static {
    /// One record.
    fn get<'a>(&'a self, user: &'a str, kind: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>>;

    /// Creates or replaces one record.
    fn put<'a>(
        &'a self,
        user: &'a str,
        kind: &'a str,
        record: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes one record; a missing one is no error.
    fn delete<'a>(&'a self, user: &'a str, kind: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Kind and content of all records of a user.
    #[allow(clippy::type_complexity, reason = "pairs in a list in a result in a future, each of them plain")]
    fn list<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Result<Vec<(String, Vec<u8>)>, StoreError>>;
}

/// A user of the protection database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct User {
    /// The user's id. Records of an earlier user of the same name are ignored.
    pub id: ViceId,
    /// Whether the user is in `system:administrators`, and has not suspended that.
    pub administrator: bool,
    /// The generation of the tokens that count.
    pub tokens: TokenGeneration,
}

/// The protection database, as far as a login needs it.
pub trait Users: Send + Sync + 'static {
    /// The user with this name; `None` also for groups.
    fn user<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<User>, StoreError>>;

    /// As [`Users::user`] for the holder of a token with these terms; `None` also if it is revoked.
    fn holder<'a>(
        &'a self,
        name: &'a str,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<Option<User>, StoreError>>;

    /// At most a page of the users, in the order of their ids, that come after this one; empty behind the last.
    fn after(&self, id: ViceId) -> BoxFuture<'_, Result<Vec<(ViceId, String)>, StoreError>>;

    /// Revokes the tokens that a user has at this time.
    fn revoke_tokens(&self, id: ViceId, now: UnixTime) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The ids of users and groups with these names, which are compared exactly.
    fn ids_of(&self, names: Vec<String>) -> BoxFuture<'_, Result<Vec<Option<ViceId>>, StoreError>>;

    /// The names of users and groups.
    fn names_of<'a>(&'a self, ids: &'a [ViceId]) -> BoxFuture<'a, Result<Vec<Option<String>>, StoreError>>;
}

/// Creates tokens that every server of the cell accepts.
pub trait Mint: Send + Sync + 'static {
    /// A token for `user` with these terms that expires at `expires`; `None` when the cell has no key for it.
    fn mint(&self, user: &UserName, level: Level, expires: UnixTime, terms: &Terms) -> Option<Token>;
}

/// Creates rxgk tokens with the cell's best key.
#[derive(Clone)]
pub struct KeyMint {
    /// The cell's keys.
    pub keys: SharedKeys,
    /// Randomness for the tokens' keys.
    pub env: EnvRef,
}

impl fmt::Debug for KeyMint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyMint({:?})", self.keys)
    }
}

/// Encryption type of the tokens' keys.
const ENCTYPE: EncType = EncType::DEFAULT;

impl Mint for KeyMint {
    fn mint(&self, user: &UserName, level: Level, expires: UnixTime, terms: &Terms) -> Option<Token> {
        let (name, terms) = (user.as_str().to_owned(), terms.clone());
        let minting = Minting { name, terms, level, expires, enctype: ENCTYPE };
        match rxgk::mint(&self.keys.get(), &minting, &self.env) {
            Ok(token) => Some(Token::Rxgk(token)),
            Err(error) => {
                tracing::error!(%user, "no token: {error}");
                None
            }
        }
    }
}
