//! The journal in the transactional store of one process.

use afs_kv::Kv;

use super::StoredOperationsDb;
use crate::EmbeddedRows;

/// The journal as tables of an [`afs_kv::Kv`], which may contain the other databases too.
pub type EmbeddedOperationsDb = StoredOperationsDb<EmbeddedRows>;

impl EmbeddedOperationsDb {
    /// A journal in a store that was opened with at least [`crate::TABLES`].
    pub fn new(kv: Kv) -> Self {
        Self::over(EmbeddedRows::new(kv))
    }
}
