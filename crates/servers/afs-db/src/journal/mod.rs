//! Journal of operations on volumes: volume, holder and progress of each operation.
//!
//! The content of an operation, and how it is resumed, is opaque to the journal: it records the holder and
//! lets one holder after another write. The bounds are small: an operation is hours of work at most, and a
//! cell has few at a time.

mod db;
mod embedded;
mod error;
pub(crate) mod rows;
pub mod rules;
mod schedule;
mod stored;

pub use db::{OperationsDb, Pending};
pub use embedded::EmbeddedOperationsDb;
pub use error::OperationError;
pub use rows::{Draft, Holder, Kept};
pub use stored::StoredOperationsDb;

/// Most operations at a time.
pub const OPERATIONS_MAX: usize = 1024;
/// Longest word, name or step, in bytes.
pub const TEXT_MAX: usize = 128;
/// Most bytes of detail for resuming an operation.
pub const DETAIL_MAX: usize = 16 << 10;
/// Lease of a holder in seconds, from its last heartbeat. Heartbeats come every 5.
pub const LEASE_SECONDS: u32 = 20;
