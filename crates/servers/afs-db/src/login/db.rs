//! Database interface of the login service.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use super::LoginError;

/// A result that may have to wait for a disk or another machine.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, LoginError>> + Send + 'a>>;

/// A record of one user.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// Its kind, named by the login service.
    pub kind: String,
    /// Its content: as secret as a passphrase, never printed.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Login records by user and kind. Every change is durable when its future resolves.
///
/// # Errors
/// All methods: invalid names and kinds, and a store that fails.
pub trait LoginDb: Send + Sync + 'static {
    /// A user's record of a kind.
    fn get(&self, user: &str, kind: &str) -> Pending<'_, Option<Vec<u8>>>;

    /// Sets a record. [`LoginError::TooLong`] and [`LoginError::TooMany`] beyond the bounds.
    fn put(&self, user: &str, kind: &str, bytes: Vec<u8>) -> Pending<'_, ()>;

    /// Removes a record; returns whether there was one.
    fn delete(&self, user: &str, kind: &str) -> Pending<'_, bool>;

    /// All records of a user, by kind.
    fn list(&self, user: &str) -> Pending<'_, Vec<Record>>;

    /// Removes all records of a user.
    fn forget(&self, user: &str) -> Pending<'_, ()>;
}
