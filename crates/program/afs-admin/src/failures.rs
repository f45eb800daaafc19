//! Failures of the database servers tried so far, for a call that any of them may answer.

use std::time::Duration;

use afs_rpc::{CallError, CallOptions};

/// Dead time of a database server: short, because there are others.
pub(crate) const PATIENCE: CallOptions = CallOptions { dead: Some(Duration::from_secs(6)), hard: None };

/// Failures of the servers tried so far, by index.
pub(crate) struct Failures {
    silent: Vec<bool>,
    /// The error to report. A server's reply is preferred to another's silence.
    last: CallError,
}

impl Failures {
    /// No server of `count` was tried yet.
    pub(crate) fn none_of(count: usize) -> Self {
        Self { silent: vec![false; count], last: CallError::Closed }
    }

    /// The error to report.
    pub(crate) fn last(self) -> CallError {
        self.last
    }

    /// Whether a server should be tried again: a silent one is not while another replies.
    pub(crate) fn is_worth_asking(&self, index: usize) -> bool {
        let all_are = self.silent.iter().all(|silent| *silent);
        all_are || !self.silent.get(index).copied().unwrap_or_default()
    }

    /// Records the failure of a server.
    pub(crate) fn note(&mut self, index: usize, error: CallError) {
        if let Some(silent) = self.silent.get_mut(index) {
            *silent = error.is_silence();
        }
        if !error.is_silence() || self.last.abort_code().is_none() {
            self.last = error;
        }
    }
}
