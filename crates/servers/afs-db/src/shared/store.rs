//! Interface of a store that several servers share.

use afs_rpc::BoxFuture;

/// Most bytes of keys and values that one transaction writes.
pub const TRANSACTION_BYTES_MAX: usize = 1 << 20;
/// Most rows in one page.
pub const PAGE_ROWS_MAX: usize = 1000;

/// Order of writes: larger is later, over all rows of the store. 0 is before everything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Revision(pub u64);

/// A value with the revision of its write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Versioned {
    /// The value.
    pub value: Vec<u8>,
    /// The revision of its write.
    pub revision: Revision,
}

/// One row that a transaction writes: its key, and its value or `None` to remove it.
pub type Written = (Vec<u8>, Option<Vec<u8>>);

/// An atomic change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    /// The row that must not have been written since `expected`.
    pub guard: Vec<u8>,
    /// Its revision as far as the caller knows; 0 if it does not exist.
    pub expected: Revision,
    /// Writes: no key twice, at most [`TRANSACTION_BYTES_MAX`] bytes.
    pub writes: Vec<Written>,
    /// Rows to read atomically if the guard is not as expected.
    pub look: Vec<Vec<u8>>,
}

/// Result of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Committed at this revision, and durable.
    Done(Revision),
    /// The guard was not as expected, and nothing was written. The rows of `look`, in its order.
    Conflict(Vec<Option<Versioned>>),
}

/// A change of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changed {
    /// The row.
    pub key: Vec<u8>,
    /// Its value; `None` if it was removed.
    pub value: Option<Vec<u8>>,
    /// The revision.
    pub revision: Revision,
}

/// All changes of one or several consecutive revisions, oldest first, none of them in part.
pub type Batch = Vec<Changed>;

/// Rows in the order of their keys, all as of one revision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// That revision.
    pub revision: Revision,
    /// The rows.
    pub rows: Vec<(Vec<u8>, Versioned)>,
    /// Whether there are more rows after them.
    pub more: bool,
}

/// Why the store gave no result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SharedError {
    /// No majority of the store can be reached. Whether a transaction happened is unknown.
    #[error("the shared store cannot be reached: {0}")]
    Unavailable(String),
    /// The revision to follow from is too old.
    #[error("the shared store has forgotten what came after revision {}", .0.0)]
    Forgotten(Revision),
    /// The store refuses, and would refuse again.
    #[error("the shared store refuses: {0}")]
    Refused(String),
}

/// A pending result of the store, in bounded time.
pub type Pending<'a, T> = BoxFuture<'a, Result<T, SharedError>>;

/// Rows that several servers share. Reads and transactions are linearizable: one that begins after the reply
/// to another is ordered after it.
pub trait SharedStore: Send + Sync + 'static {
    /// Rows as of now, all at the same moment, in the order of `keys`.
    fn read(&self, keys: Vec<Vec<u8>>) -> Pending<'_, Vec<Option<Versioned>>>;

    /// At most `limit` rows behind the key `after`, as of revision `at`, or of now. `limit` is 1 to
    /// [`PAGE_ROWS_MAX`].
    fn page(&self, at: Option<Revision>, after: Option<Vec<u8>>, limit: usize) -> Pending<'_, Page>;

    /// Writes, if the guard is as expected. The same transaction may be retransmitted when its reply was
    /// lost.
    fn commit(&self, transaction: Transaction) -> Pending<'_, Outcome>;

    /// All changes after a revision.
    fn watch(&self, after: Revision) -> Pending<'_, Box<dyn Watch>>;
}

/// A stream of changes. Ends with its first error.
pub trait Watch: Send {
    /// The next changes. Waits until there are some.
    fn next(&mut self) -> Pending<'_, Batch>;
}
