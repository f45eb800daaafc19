//! What keeps the rows of the databases: the store of one process, or one that several servers share.

use std::future::ready;

use afs_kv::{Kv, UpdateError};
use afs_rpc::BoxFuture;

use crate::{LocationError, Rows, RowsMut};

/// A store of rows. Cheap to clone; clones are the same store.
///
/// The rules of a database are closures over rows, which may be run more than once: only the last run counts.
pub trait Store: Clone + Send + Sync + 'static {
    /// What `question` finds in one state of the rows.
    fn read<'a, T, E>(
        &'a self,
        question: impl Fn(&dyn Rows) -> Result<T, E> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        T: Send + 'a,
        E: From<LocationError> + Send + 'a;

    /// Makes the changes of `change` durable, all of them or, when it fails, none.
    fn change<'a, T, E>(
        &'a self,
        change: impl Fn(&mut dyn RowsMut) -> Result<T, E> + Send + Sync + 'static,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        T: Send + 'static,
        E: From<LocationError> + Send + 'static;

    /// A number that is larger after every change that an answer can show. Costs no I/O.
    fn version(&self) -> u64;

    /// How many entries one change may be about at most: far below what its transaction takes.
    fn part_max(&self) -> usize;
}

/// Rows as tables of an [`afs_kv::Kv`], which must be opened with at least [`crate::TABLES`].
///
/// Reads are answered at once from a snapshot. A change is one operation of the store's next batch.
#[derive(Clone)]
pub struct EmbeddedRows(Kv);

impl EmbeddedRows {
    /// The rows of a store.
    pub fn new(kv: Kv) -> Self {
        EmbeddedRows(kv)
    }
}

impl Store for EmbeddedRows {
    fn read<'a, T, E>(
        &'a self,
        question: impl Fn(&dyn Rows) -> Result<T, E> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        T: Send + 'a,
        E: From<LocationError> + Send + 'a,
    {
        Box::pin(ready(question(&self.0.snapshot())))
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
            self.0.update(move |rows| change(rows)).await.map_err(|error| match error {
                UpdateError::Refused(error) => error,
                UpdateError::Kv(error) => LocationError::Store(error.to_string()).into(),
            })
        })
    }

    /// The number of the last batch that readers see. Changes of all databases in the store count.
    fn version(&self) -> u64 {
        self.0.snapshot().sequence()
    }

    fn part_max(&self) -> usize {
        10_000
    }
}
