//! Several servers of one database, of which one has to answer.

use std::time::Duration;

use afs_rpc::{CallError, CallOptions};

/// Longest silence of a database server: there are others.
pub(crate) const PATIENCE: CallOptions = CallOptions { dead: Some(Duration::from_secs(6)), hard: None };

/// What came of the servers that were asked so far, by their place in the list.
pub(crate) struct Tried {
    silent: Vec<bool>,
    /// Why there is no answer. What a server said says more than that another says nothing.
    last: CallError,
}

impl Tried {
    /// Of so many servers, none was asked yet.
    pub(crate) fn none_of(count: usize) -> Self {
        Self { silent: vec![false; count], last: CallError::Closed }
    }

    /// Why there is no answer.
    pub(crate) fn last(self) -> CallError {
        self.last
    }

    /// A server that was silent is not waited for again as long as another says something.
    pub(crate) fn is_worth_asking(&self, index: usize) -> bool {
        let all_are = self.silent.iter().all(|silent| *silent);
        all_are || !self.silent.get(index).copied().unwrap_or_default()
    }

    /// Remembers that a server did not do what was asked.
    pub(crate) fn note(&mut self, index: usize, error: CallError) {
        if let Some(silent) = self.silent.get_mut(index) {
            *silent = error.is_silence();
        }
        if !error.is_silence() || self.last.abort_code().is_none() {
            self.last = error;
        }
    }
}
