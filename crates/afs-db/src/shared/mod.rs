//! Databases that several servers share: each of them takes reads and changes.
//!
//! The rows are in a store outside that decides what happened before what ([`SharedStore`]: etcd, or memory in tests).
//! Each server follows it with a whole copy of the rows in memory, against which the rules run as they do on the rows of
//! one process. What a change read is vouched for by one revision, that of the database's guard row: the commit asks for
//! it, and every commit moves it, so that all changes of a database stand in one row. A commit that comes too late runs
//! again on the newer rows.

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
    Answer, Batch, Changed, Outcome, PAGE_ROWS_MAX, Page, Revision, SharedError, SharedStore,
    TRANSACTION_BYTES_MAX, Transaction, Versioned, Watch, Written,
};
