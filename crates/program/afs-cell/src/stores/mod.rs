//! Stores of this host that no server has open: each is found by its files, checked without a write, and repaired beside what is set aside.

mod error;
mod find;
mod repair;
mod report;
#[cfg(test)]
mod tests;

pub use error::StoresError;
pub use find::{OfflineStore, find};
pub use repair::Repaired;
pub use report::{LostBatchesOf, StoreDamage, StoreReport};
