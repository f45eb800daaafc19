//! Transaction of one operation: reads, changes, and commit hooks.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

use bytes::Bytes;

use crate::cursor::{Layer, Range, Row, Span};
use crate::error::KvError;
use crate::snapshot::Snapshot;

/// Rows changed and not yet committed.
pub(crate) type Overlay = BTreeMap<Bytes, Option<Bytes>>;

/// What an operation does about its commit, beside its rows.
pub(crate) enum Hook {
    /// Called with the batch's sequence number when its record is durable and before it is visible.
    Visible(Box<dyn FnOnce(u64) + Send>),
    /// Called then, and also when it is unknown whether the record is durable.
    UnlessLost(Box<dyn FnOnce() + Send>),
}

impl Hook {
    /// The batch of this number is durable.
    pub(crate) fn durable(self, sequence: u64) {
        match self {
            Self::Visible(hook) => hook(sequence),
            Self::UnlessLost(hook) => hook(),
        }
    }

    /// Only the next open tells whether the batch is durable.
    pub(crate) fn unknown(self) {
        if let Self::UnlessLost(hook) = self {
            hook();
        }
    }
}

/// Abandons an operation: none of its changes is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abandon;

/// One operation of a batch. It sees everything committed, the earlier operations of its batch, and its own changes.
/// Its changes take effect all together or, when it returns an error, not at all.
pub struct Txn<'a> {
    committed: &'a Snapshot,
    batch: &'a Overlay,
    own: Overlay,
    own_bytes: usize,
    hooks: Vec<Hook>,
    /// What the running part has changed: keys with the operation's own values of before, oldest first.
    undo: Option<Vec<(Bytes, OwnValue)>>,
}

/// A row of the overlay: absent, deleted, or a value.
type OwnValue = Option<Option<Bytes>>;

impl<'a> Txn<'a> {
    pub(crate) fn new(committed: &'a Snapshot, batch: &'a Overlay) -> Self {
        Self { committed, batch, own: Overlay::new(), own_bytes: 0, hooks: Vec::new(), undo: None }
    }

    pub(crate) fn into_changes(self) -> (Overlay, usize, Vec<Hook>) {
        (self.own, self.own_bytes, self.hooks)
    }

    /// The number under which this operation will be committed.
    pub fn sequence(&self) -> u64 {
        self.committed.sequence() + 1
    }

    /// The value of a key.
    pub fn get(&self, table: &str, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        let key = self.committed.tables().key(table, key);
        match self.own.get(&key).or_else(|| self.batch.get(&key)) {
            Some(value) => Ok(value.clone()),
            None => self.committed.get_raw(&key),
        }
    }

    /// Sets the value of a key.
    pub fn put(&mut self, table: &str, key: &[u8], value: impl Into<Bytes>) {
        self.change(table, key, Some(value.into()));
    }

    /// Removes a key; one that does not exist is no error.
    pub fn delete(&mut self, table: &str, key: &[u8]) {
        self.change(table, key, None);
    }

    /// Rows of one table in the order of their keys, or in the reverse order.
    pub fn range(&self, table: &str, range: impl RangeBounds<[u8]>, reverse: bool) -> Range<'_> {
        let span = Span::within(self.committed.tables().number(table), &range, reverse);
        let mut layers: Vec<Box<dyn Layer + '_>> = Vec::with_capacity(5);
        layers.push(Box::new(Borrowed(&self.own)));
        layers.push(Box::new(Borrowed(self.batch)));
        layers.extend(self.committed.layers_newest_first());
        Range::new(layers, &span)
    }

    /// The row with the greatest key from `first` to `last`, both included.
    pub fn last_at_or_before(&self, table: &str, first: &[u8], last: &[u8]) -> Result<Option<Row>, KvError> {
        self.range(table, (Bound::Included(first), Bound::Included(last)), true).next().transpose()
    }

    /// Calls `hook` with the commit's sequence number once this operation is durable and before any reader can see
    /// it; never when the operation is abandoned or its commit fails. Caches use it to drop what the operation changed.
    /// The hook must be quick and must not use the store.
    pub fn before_visible(&mut self, hook: impl FnOnce(u64) + Send + 'static) {
        self.hooks.push(Hook::Visible(Box::new(hook)));
    }

    /// As [`Txn::before_visible`], but `hook` is also called where it is unknown whether the commit happened: it is
    /// dropped only where the operation certainly has no effect. For what belongs to the rows from now on, and is
    /// undone when it is dropped.
    pub fn unless_lost(&mut self, hook: impl FnOnce() + Send + 'static) {
        self.hooks.push(Hook::UnlessLost(Box::new(hook)));
    }

    /// Runs a part of the operation, whose changes and hooks are kept all together or, when it returns an error, not at
    /// all; the operation goes on in either case. Parts may contain parts. Cost of a failure: that of the part's changes.
    ///
    /// # Errors
    /// That of `part`.
    pub fn part<T, E>(&mut self, part: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        let (bytes, hooks) = (self.own_bytes, self.hooks.len());
        let outer = self.undo.replace(Vec::new());
        let done = part(self);
        let undo = std::mem::replace(&mut self.undo, outer).unwrap_or_default();
        match &done {
            Ok(_) => {
                if let Some(outer) = &mut self.undo {
                    outer.extend(undo);
                }
            }
            Err(_) => {
                self.own_bytes = bytes;
                self.hooks.truncate(hooks);
                undo.into_iter().rev().for_each(|(key, before)| self.restore(key, before));
            }
        }
        done
    }

    fn restore(&mut self, key: Bytes, before: OwnValue) {
        match before {
            Some(value) => drop(self.own.insert(key, value)),
            None => drop(self.own.remove(&key)),
        }
    }

    fn change(&mut self, table: &str, key: &[u8], value: Option<Bytes>) {
        self.own_bytes += key.len() + value.as_ref().map_or(0, Bytes::len);
        let key = self.committed.tables().key(table, key);
        let before = self.own.insert(key.clone(), value);
        if let Some(undo) = &mut self.undo {
            undo.push((key, before));
        }
    }
}

struct Borrowed<'a>(&'a Overlay);

impl Layer for Borrowed<'_> {
    fn fill(
        &self,
        span: &Span,
        limit: usize,
        out: &mut std::collections::VecDeque<crate::cursor::Entry>,
    ) -> Result<Option<Bytes>, KvError> {
        self.0.fill(span, limit, out)
    }
}
