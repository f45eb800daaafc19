//! Interface of a row store: the store of one process, or one that several servers share.

use std::future::ready;
use std::sync::Arc;

use afs_kv::{Kv, UpdateError};
use afs_rpc::{BoxFuture, EnvExt};

use crate::depths::{InMemory, Kept};
use crate::row_cache::RowCache;
use crate::{LocationError, Rows, RowsMut};

/// A store of rows. Cheap to clone; clones are the same store.
///
/// The rules of a database are closures over rows, which may run more than once: only the last run counts.
pub trait Store: Clone + Send + Sync + 'static {
    /// The result of `query` on one state of the rows. Never blocks the calling thread on a disk.
    fn read<'a, T, E>(
        &'a self,
        query: impl Fn(&dyn Rows) -> Result<T, E> + Send + Sync + 'static,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        T: Send + 'static,
        E: From<LocationError> + Send + 'static;

    /// Makes the changes of `change` durable, atomically; when it fails, none.
    fn change<'a, T, E>(
        &'a self,
        change: impl Fn(&mut dyn RowsMut) -> Result<T, E> + Send + Sync + 'static,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        T: Send + 'static,
        E: From<LocationError> + Send + 'static;

    /// A number that increases with every change that a read can see. Costs no I/O.
    fn version(&self) -> u64;

    /// Ready when the version is another than `since`.
    fn changed(&self, since: u64) -> BoxFuture<'_, ()>;

    /// Most entries that one change may concern: far below the capacity of its transaction.
    fn part_max(&self) -> usize;
}

/// Rows as tables of an [`afs_kv::Kv`], which must be opened with at least [`crate::TABLES`].
///
/// A read returns at once if memory suffices: the rows written since the last two checkpoints, and up to 4
/// MiB of rows that were read from the disk since the last commit. Otherwise it runs on a thread that may
/// wait for a disk. A change is one operation of the store's next batch.
#[derive(Clone)]
pub struct EmbeddedRows {
    kv: Kv,
    cache: Arc<RowCache>,
}

impl EmbeddedRows {
    /// The rows of a store.
    pub fn new(kv: Kv) -> Self {
        EmbeddedRows { kv, cache: Arc::default() }
    }

    /// The result from memory alone, if that suffices.
    fn in_memory<T>(&self, query: impl FnOnce(&dyn Rows) -> T) -> Option<T> {
        let snapshot = self.kv.snapshot();
        let rows = InMemory::new(&snapshot, &self.cache);
        let answer = query(&rows);
        (!rows.has_missed()).then_some(answer)
    }
}

impl Store for EmbeddedRows {
    fn read<'a, T, E>(
        &'a self,
        query: impl Fn(&dyn Rows) -> Result<T, E> + Send + Sync + 'static,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        T: Send + 'static,
        E: From<LocationError> + Send + 'static,
    {
        if let Some(answer) = self.in_memory(&query) {
            return Box::pin(ready(answer));
        }
        let (env, rows) = (self.kv.env().clone(), self.clone());
        let read = move || query(&Kept::new(&rows.kv.snapshot(), &rows.cache));
        Box::pin(async move {
            let answer = env.run_blocking(read).await;
            answer.unwrap_or_else(|_| Err(LocationError::Store("the process is at its end".into()).into()))
        })
    }

    fn change<'a, T, E>(
        &'a self,
        change: impl Fn(&mut dyn RowsMut) -> Result<T, E> + Send + Sync + 'static,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        T: Send + 'static,
        E: From<LocationError> + Send + 'static,
    {
        Box::pin(async move {
            self.kv.update(move |rows| change(rows)).await.map_err(|error| match error {
                UpdateError::Refused(error) => error,
                UpdateError::Kv(error) => LocationError::Store(error.to_string()).into(),
            })
        })
    }

    /// The number of the last batch that readers see. Changes of all databases in the store count.
    fn version(&self) -> u64 {
        self.kv.snapshot().sequence()
    }

    fn changed(&self, since: u64) -> BoxFuture<'_, ()> {
        Box::pin(self.kv.changed(since))
    }

    fn part_max(&self) -> usize {
        10_000
    }
}
