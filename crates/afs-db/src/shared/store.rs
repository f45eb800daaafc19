//! What the databases ask of a store that several servers share.

use afs_rpc::BoxFuture;

/// Most bytes of keys and values that one transaction writes.
pub const TRANSACTION_BYTES_MAX: usize = 1 << 20;
/// Most rows asked for in one page.
pub const PAGE_ROWS_MAX: usize = 1000;

/// When something was written: larger is later, over all rows of the store. 0 is before everything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Revision(pub u64);

/// A value and when it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Versioned {
    /// The value.
    pub value: Vec<u8>,
    /// When it was written.
    pub revision: Revision,
}

/// One row that a transaction writes: its key, and its value or `None` to remove it.
pub type Written = (Vec<u8>, Option<Vec<u8>>);

/// A change that happens as a whole, or not at all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    /// The row that must not have been written since.
    pub guard: Vec<u8>,
    /// Its revision as far as the caller knows; 0 when it is not there.
    pub expected: Revision,
    /// What to write: no key twice, at most [`TRANSACTION_BYTES_MAX`] bytes.
    pub writes: Vec<Written>,
    /// Rows to read, all at the same moment, when the guard is not as expected.
    pub look: Vec<Vec<u8>>,
}

/// What became of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It happened, at this revision, and is durable.
    Done(Revision),
    /// The guard was not as expected, and nothing was written. What `look` asked for, in its order.
    Conflict(Vec<Option<Versioned>>),
}

/// A change of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changed {
    /// The row.
    pub key: Vec<u8>,
    /// Its value; `None` when it was removed.
    pub value: Option<Vec<u8>>,
    /// When.
    pub revision: Revision,
}

/// All changes of one or several revisions in a row, oldest first, none of them in part.
pub type Batch = Vec<Changed>;

/// Rows in the order of their keys, all as they were at one revision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// That revision.
    pub revision: Revision,
    /// The rows.
    pub rows: Vec<(Vec<u8>, Versioned)>,
    /// Whether there are more behind them.
    pub more: bool,
}

/// Why the store gave no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SharedError {
    /// No majority of the store can be reached. Whether a transaction happened is not known.
    #[error("the shared store cannot be reached: {0}")]
    Unavailable(String),
    /// What was to be followed is too old to be told.
    #[error("the shared store has forgotten what came after revision {}", .0.0)]
    Forgotten(Revision),
    /// The store refuses, and would refuse again.
    #[error("the shared store refuses: {0}")]
    Refused(String),
}

/// What a store answers, in bounded time.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, SharedError>>;

/// Rows that several servers share. Reads and transactions are linearizable: whatever began after another was answered
/// comes after it.
pub trait SharedStore: Send + Sync + 'static {
    /// Rows as they are now, all at the same moment, in the order of `keys`.
    fn read(&self, keys: Vec<Vec<u8>>) -> Answer<'_, Vec<Option<Versioned>>>;

    /// At most `limit` rows behind the key `after`, as of revision `at`, or of now. `limit` is 1 to [`PAGE_ROWS_MAX`].
    fn page(&self, at: Option<Revision>, after: Option<Vec<u8>>, limit: usize) -> Answer<'_, Page>;

    /// Writes, if the guard is as expected. The same transaction may be sent again when its answer was lost.
    fn commit(&self, transaction: Transaction) -> Answer<'_, Outcome>;

    /// Everything that happens after a revision.
    fn watch(&self, after: Revision) -> Answer<'_, Box<dyn Watch>>;
}

/// Follows a store. Ends with its first error.
pub trait Watch: Send {
    /// What happened next. Waits as long as nothing does.
    fn next(&mut self) -> Answer<'_, Batch>;
}
