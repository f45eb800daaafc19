//! Databases shared by several servers, each of which takes reads and changes.
//!
//! The rows are in an external store that orders all changes ([`SharedStore`]: etcd, or memory in tests).
//! Each server follows it with a full replica of the rows in memory, on which the rules run as they do on the
//! rows of one process. The reads of a change are verified by one revision, that of the database's guard row:
//! the commit requires it, and every commit moves it, so all changes of a database are serialised by one row.
//! A commit that comes too late runs again on the newer rows.

mod change;
mod confirm;
pub mod copy;
mod follow;
mod health;
pub mod memory;
mod overlay;
mod replica;
mod rows;
mod store;

#[cfg(test)]
mod tests;

pub use copy::is_empty;
pub use memory::{MemoryShared, MemoryStore};
pub use rows::{Freshness, SharedDatabase, SharedOptions, SharedRows, Sharing};
pub use store::{
    Batch, Changed, Outcome, PAGE_ROWS_MAX, Page, Pending, Revision, SharedError, SharedStore,
    TRANSACTION_BYTES_MAX, Transaction, Versioned, Watch, Written,
};
