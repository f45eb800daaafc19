//! Fields and structures of the journal's calls.

use crate::ids::{UnixSeconds, VolumeId};
use crate::xdr::{BoundedVec, ByteString};

/// Most bytes of data needed to resume an operation.
pub const DETAIL_MAX: usize = 16 << 10;
/// Most operations in one reply of [`ListOperations`](super::ListOperations).
pub const PAGE_MAX: usize = 32;

/// A word, a name, a step.
pub type Text = ByteString<128>;
/// Data needed to resume an operation; opaque to the server.
pub type Detail = ByteString<DETAIL_MAX>;
/// Operations of one reply.
pub type Operations = BoundedVec<OpenOperation, PAGE_MAX>;

/// Most snapshots that a schedule keeps of a volume, of days and of weeks each.
pub const SCHEDULED_MAX: u32 = 366;

xdr_struct! {
    /// How many snapshots the servers keep of each read-write volume; with zero of both kinds there is no schedule.
    #[derive(Default)]
    pub struct SnapshotSchedule {
        /// Number of days whose newest snapshot is kept.
        pub daily: u32,
        /// Number of weeks whose newest snapshot is kept.
        pub weekly: u32,
    }
}

xdr_struct! {
    /// The holder of an operation, according to its own statement.
    #[derive(Default)]
    pub struct OperationHolder {
        /// The user.
        pub who: Text,
        /// The machine.
        pub host: Text,
        /// The process there.
        pub pid: u32,
    }
}

xdr_struct! {
    /// An operation in progress.
    #[derive(Default)]
    pub struct OpenOperation {
        /// Its number, never used again.
        pub id: u64,
        /// Kind of operation.
        pub word: Text,
        /// Number of the group's read-write volume.
        pub volume: VolumeId,
        /// The volume's name.
        pub name: Text,
        /// Its holder.
        pub holder: OperationHolder,
        /// The last step recorded.
        pub step: Text,
        /// Data needed to resume it.
        pub detail: Detail,
        /// When it began.
        pub since: UnixSeconds,
        /// Last call of its holder.
        pub heard: UnixSeconds,
        /// Whether its lease has expired, so that another caller may take it over.
        pub lapsed: bool,
    }
}
