//! Records of users for the login service, opaque to the database.

mod db;
mod embedded;
mod error;
pub(crate) mod rows;
mod stored;

pub use db::{LoginDb, Pending, Record};
pub use embedded::EmbeddedLoginDb;
pub use error::LoginError;
pub use stored::StoredLoginDb;

/// Longest name of a user, in bytes.
pub const USER_MAX: usize = 127;
/// Longest kind of a record, in bytes.
pub const KIND_MAX: usize = 127;
/// Most bytes of one record.
pub const RECORD_MAX: usize = 64 << 10;
/// Most records of one user.
pub const RECORDS_MAX: usize = 64;
