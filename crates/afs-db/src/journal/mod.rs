//! The journal of operations on volumes: what is being done to which volume, by whom, and how far it got.
//!
//! What an operation is, and how it is resumed, is its own affair: the journal keeps who holds it and lets one holder after
//! another write. The bounds are small: an operation is hours of work at most, and a cell has few at a time.

mod db;
mod embedded;
mod error;
pub(crate) mod rows;
pub mod rules;
mod schedule;
mod stored;

pub use db::{Answer, OperationsDb};
pub use embedded::EmbeddedOperationsDb;
pub use error::OperationError;
pub use rows::{Draft, Holder, Kept};
pub use stored::StoredOperationsDb;

/// Most operations at a time.
pub const OPERATIONS_MAX: usize = 1024;
/// Longest word, name or step, in bytes.
pub const TEXT_MAX: usize = 128;
/// Most bytes of what is needed to resume an operation.
pub const DETAIL_MAX: usize = 16 << 10;
/// A holder who has not been heard of for so long has lost his lease, in seconds. He says that he lives every 5.
pub const LEASE_SECONDS: u32 = 20;
