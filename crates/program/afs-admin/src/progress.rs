//! Progress reports of an operation.

/// Receiver of progress reports. Called often; must not block.
pub trait Progress: Send + Sync + 'static {
    /// A step begins: a line without a full stop.
    fn step(&self, what: &str);

    /// Bytes moved in the present step, and their total if known. Both are estimates.
    fn bytes(&self, done: u64, of: Option<u64>);

    /// A warning for the user, which does not end the operation.
    fn warn(&self, what: &str);
}

/// Writes progress to the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogProgress;

impl Progress for LogProgress {
    fn step(&self, what: &str) {
        tracing::debug!("{what}");
    }

    fn bytes(&self, _done: u64, _of: Option<u64>) {}

    fn warn(&self, what: &str) {
        tracing::warn!("{what}");
    }
}
