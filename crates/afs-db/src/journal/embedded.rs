//! The journal in the transactional store of one process.

use std::future::ready;

use afs_kv::{Kv, UpdateError};
use afs_wire::ids::UnixSeconds;

use super::{Answer, Draft, Holder, Kept, OperationError, OperationsDb, rules};

/// The journal as tables of an [`afs_kv::Kv`]. A handle: clones share the store, which holds the other databases too.
#[derive(Clone)]
pub struct EmbeddedOperationsDb {
    kv: Kv,
}

impl EmbeddedOperationsDb {
    /// Takes a store that was opened with at least [`crate::TABLES`].
    pub fn new(kv: Kv) -> Self {
        EmbeddedOperationsDb { kv }
    }

    fn write<'a, T: Send + 'static>(
        &'a self,
        change: impl FnOnce(&mut afs_kv::Txn<'_>) -> Result<T, OperationError> + Send + 'static,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            self.kv.update(change).await.map_err(|error| match error {
                UpdateError::Refused(error) => error,
                UpdateError::Kv(error) => OperationError::Store(error.to_string()),
            })
        })
    }
}

impl OperationsDb for EmbeddedOperationsDb {
    fn begin(&self, draft: Draft, now: UnixSeconds) -> Answer<'_, Kept> {
        self.write(move |rows| rules::begin(rows, draft, now))
    }

    fn step(&self, id: u64, holding: u64, step: String, detail: Vec<u8>, now: UnixSeconds) -> Answer<'_, ()> {
        self.write(move |rows| rules::step(rows, id, holding, step, detail, now))
    }

    fn heartbeat(&self, id: u64, holding: u64, now: UnixSeconds) -> Answer<'_, ()> {
        self.write(move |rows| rules::heartbeat(rows, id, holding, now))
    }

    fn end(&self, id: u64, holding: u64) -> Answer<'_, ()> {
        self.write(move |rows| rules::end(rows, id, holding))
    }

    fn list(&self, after: u64, limit: usize) -> Answer<'_, Vec<Kept>> {
        Box::pin(ready(rules::list(&self.kv.snapshot(), after, limit)))
    }

    fn take_over(&self, id: u64, holder: Holder, now: UnixSeconds) -> Answer<'_, Kept> {
        self.write(move |rows| rules::take_over(rows, id, holder, now))
    }
}
