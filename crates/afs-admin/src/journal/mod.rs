//! The journal of operations: what is being done to which volume, by whom, since when, and how far it got.
//!
//! A step is written before its effect. Whoever finds an operation whose holder is gone can therefore complete or
//! undo it ([`Admin::resume`](crate::Admin::resume)). An operation is held under a lease; only its holder may write
//! steps, and taking an operation over ends the old lease, so that a holder who was only slow is stopped at his next step.

mod job;
mod remote;

pub(crate) use job::Job;
pub use remote::CellJournal;

use std::fmt;

use afs_rpc::BoxFuture;
use afs_wire::ids::{UnixSeconds, VolumeId};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// An answer of the journal.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, JournalError>>;

/// Number of an operation, never used again.
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
    /// Which holding of it this is; another one after it was taken over.
    pub holding: u64,
}

/// Who holds an operation.
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

/// An operation that is to begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draft {
    /// Which operation, as the tool's word: `move`.
    pub word: String,
    /// Number of the group's read-write volume. One group has one operation at a time.
    pub volume: VolumeId,
    /// The volume's name.
    pub name: String,
    /// Who begins it.
    pub holder: Holder,
    /// Its first step.
    pub step: String,
    /// All that is needed to resume it; at most [`DETAIL_MAX`] bytes.
    pub detail: Bytes,
}

/// An operation that has not ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its number.
    pub id: OperationId,
    /// What it is, who holds it, and the last step written.
    pub draft: Draft,
    /// When it began.
    pub since: UnixSeconds,
    /// When its holder was last heard of.
    pub heard: UnixSeconds,
    /// Whether the holder is gone, so that others may take it over.
    pub lapsed: bool,
}

/// Most bytes of [`Draft::detail`].
pub const DETAIL_MAX: usize = afs_wire::operations::DETAIL_MAX;

/// Why the journal did not do what it was asked for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another operation on the volume has not ended.
    #[error("{0} is not done with {1} of this volume")]
    Busy(Holder, String),
    /// Somebody else holds the operation, or it has ended.
    #[error("the operation was taken over by somebody else")]
    Lost,
    /// It cannot be read or written.
    #[error("{0}")]
    Store(String),
}

/// Where operations are written down. Every change is durable when its answer comes.
///
/// # Errors
/// All: [`JournalError::Store`]. A change by one who is not the holder: [`JournalError::Lost`].
pub trait Journal: Send + Sync + 'static {
    /// Begins an operation. [`JournalError::Busy`] while another one on the volume has not ended.
    fn begin(&self, draft: Draft) -> Answer<'_, Lease>;

    /// Writes the next step.
    fn step(&self, lease: Lease, step: String, detail: Bytes) -> Answer<'_, ()>;

    /// Says that the holder lives. To be called every [`HEARTBEAT`].
    fn heartbeat(&self, lease: Lease) -> Answer<'_, ()>;

    /// Removes an operation that is done or undone.
    fn end(&self, lease: Lease) -> Answer<'_, ()>;

    /// The operations that have not ended, oldest first.
    fn open(&self) -> Answer<'_, Vec<Record>>;

    /// Takes an operation over whose holder is gone. [`JournalError::Lost`] if he is not, or it has ended.
    fn take_over(&self, id: OperationId, holder: Holder) -> Answer<'_, (Lease, Record)>;
}

/// Time between two signs of life of a holder.
pub const HEARTBEAT: std::time::Duration = std::time::Duration::from_secs(5);
