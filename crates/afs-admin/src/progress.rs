//! What is told to whoever waits.

/// Told of what an operation is doing. Called often; must not wait.
pub trait Progress: Send + Sync + 'static {
    /// Something else begins: a line without a full stop.
    fn step(&self, what: &str);

    /// How much of the present step has been moved, in bytes, of how much if that is known. Estimates both.
    fn bytes(&self, done: u64, of: Option<u64>);

    /// Something that the one who asked should know, and that does not end the operation.
    fn warn(&self, what: &str);
}

/// Nobody waits: the log is told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn step(&self, what: &str) {
        tracing::debug!("{what}");
    }

    fn bytes(&self, _done: u64, _of: Option<u64>) {}

    fn warn(&self, what: &str) {
        tracing::warn!("{what}");
    }
}
