//! Database interface of the journal service.

use std::future::Future;
use std::pin::Pin;

use afs_wire::ids::UnixSeconds;
use afs_wire::operations::SnapshotSchedule;

use super::{Draft, Holder, Kept, OperationError};

/// A result that may have to wait for a disk or another machine.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, OperationError>> + Send + 'a>>;

/// The journal. Every change is durable when its future resolves; `now` is the caller's clock.
///
/// # Errors
/// All methods: a store that fails. Changes by a caller that does not hold the operation:
/// [`OperationError::Lost`], or [`OperationError::Gone`] when it has ended.
pub trait OperationsDb: Send + Sync + 'static {
    /// Begins an operation. [`OperationError::Busy`] while another operation on the volume has not ended.
    fn begin(&self, draft: Draft, now: UnixSeconds) -> Pending<'_, Kept>;

    /// Writes the next step, and extends the lease.
    fn step(&self, id: u64, holding: u64, step: String, detail: Vec<u8>, now: UnixSeconds)
    -> Pending<'_, ()>;

    /// Extends the lease.
    fn heartbeat(&self, id: u64, holding: u64, now: UnixSeconds) -> Pending<'_, ()>;

    /// Removes an operation.
    fn end(&self, id: u64, holding: u64) -> Pending<'_, ()>;

    /// At most `limit` operations with ids above `after`, by id.
    fn list(&self, after: u64, limit: usize) -> Pending<'_, Vec<Kept>>;

    /// The schedule of snapshots, if one was set.
    fn schedule(&self) -> Pending<'_, Option<SnapshotSchedule>>;

    /// Sets the schedule of snapshots.
    fn set_schedule(&self, schedule: SnapshotSchedule) -> Pending<'_, ()>;

    /// Gives an operation whose lease has expired to another holder. [`OperationError::Busy`] while it has
    /// not.
    fn take_over(&self, id: u64, holder: Holder, now: UnixSeconds) -> Pending<'_, Kept>;
}
