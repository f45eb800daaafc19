//! The protection database in the transactional store of one process.

use afs_kv::Kv;

use super::StoredProtectionDb;
use crate::EmbeddedRows;

/// A protection database whose rows are tables of an [`afs_kv::Kv`], which may contain the other databases
/// too.
pub type EmbeddedProtectionDb = StoredProtectionDb<EmbeddedRows>;

impl EmbeddedProtectionDb {
    /// A database in a store that was opened with at least [`crate::TABLES`].
    pub fn new(kv: Kv) -> Self {
        Self::over(EmbeddedRows::new(kv))
    }
}
