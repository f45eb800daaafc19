//! Journal of operations: volume, holder, start and progress of each.
//!
//! A step is recorded before its effect. An operation whose holder is gone can therefore be completed or
//! undone by another ([`Admin::resume`](crate::Admin::resume)). An operation is held under a lease; only its
//! holder may write steps, and taking it over ends the old lease, so a holder that was only slow is stopped
//! at its next step.

mod job;
mod remote;

pub(crate) use job::Job;
pub use remote::CellJournal;

use std::fmt;

use afs_rpc::BoxFuture;
use afs_wire::ids::{UnixSeconds, VolumeId};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A pending result of the journal.
pub type Pending<'a, T> = BoxFuture<'a, Result<T, JournalError>>;

/// Id of an operation, never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OperationId(pub u64);

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The right to write steps of one operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The operation.
    pub id: OperationId,
    /// Number of the holding; it changes when the operation is taken over.
    pub holding: u64,
}

/// The holder of an operation.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Holder {
    /// The user's name, as the holder says.
    pub who: String,
    /// The machine.
    pub host: String,
    /// The process there.
    pub pid: u32,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {} on {})", self.who, self.pid, self.host)
    }
}

/// An operation to begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draft {
    /// The kind of operation, as the tool's word: `move`.
    pub word: String,
    /// Id of the group's read-write volume. One group has one operation at a time.
    pub volume: VolumeId,
    /// The volume's name.
    pub name: String,
    /// The holder that begins it.
    pub holder: Holder,
    /// Its first step.
    pub step: String,
    /// Everything needed to resume it; at most [`DETAIL_MAX`] bytes.
    pub detail: Bytes,
}

/// An operation that has not ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its id.
    pub id: OperationId,
    /// Kind, holder, and the last step recorded.
    pub draft: Draft,
    /// Start time.
    pub since: UnixSeconds,
    /// Time of the holder's last heartbeat.
    pub heard: UnixSeconds,
    /// Whether the lease has expired, so that another may take it over.
    pub lapsed: bool,
}

/// Most bytes of [`Draft::detail`].
pub const DETAIL_MAX: usize = afs_wire::operations::DETAIL_MAX;

/// Why the journal failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another operation on the volume has not ended.
    #[error("{0} is not done with {1} of this volume")]
    Busy(Holder, String),
    /// Another holder has the operation, or it has ended.
    #[error("the operation was taken over by somebody else")]
    Lost,
    /// The journal cannot be read or written.
    #[error("{0}")]
    Store(String),
}

/// The store of operations. Every change is durable when its future resolves.
///
/// # Errors
/// All methods: [`JournalError::Store`]. A change by a caller that is not the holder: [`JournalError::Lost`].
pub trait Journal: Send + Sync + 'static {
    /// Begins an operation. [`JournalError::Busy`] while another on the volume has not ended.
    fn begin(&self, draft: Draft) -> Pending<'_, Lease>;

    /// Writes the next step.
    fn step(&self, lease: Lease, step: String, detail: Bytes) -> Pending<'_, ()>;

    /// Sends a heartbeat. To be called every [`HEARTBEAT`].
    fn heartbeat(&self, lease: Lease) -> Pending<'_, ()>;

    /// Removes an operation that is completed or undone.
    fn end(&self, lease: Lease) -> Pending<'_, ()>;

    /// The operations that have not ended, oldest first.
    fn open(&self) -> Pending<'_, Vec<Record>>;

    /// Takes over an operation whose holder is gone. [`JournalError::Lost`] if it is not, or the operation
    /// has ended.
    fn take_over(&self, id: OperationId, holder: Holder) -> Pending<'_, (Lease, Record)>;
}

/// Time between two heartbeats of a holder.
pub const HEARTBEAT: std::time::Duration = std::time::Duration::from_secs(5);
