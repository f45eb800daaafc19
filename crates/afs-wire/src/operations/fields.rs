//! What the journal's calls are made of.

use crate::ids::{UnixSeconds, VolumeId};
use crate::xdr::{BoundedVec, ByteString};

/// Most bytes of what is needed to resume an operation.
pub const DETAIL_MAX: usize = 16 << 10;
/// Most operations of one answer of [`ListOperations`](super::ListOperations).
pub const PAGE_MAX: usize = 32;

/// A word, a name, a step.
pub type Text = ByteString<128>;
/// What is needed to resume an operation; the server does not look into it.
pub type Detail = ByteString<DETAIL_MAX>;
/// Operations of one answer.
pub type Operations = BoundedVec<OpenOperation, PAGE_MAX>;

/// Most snapshots that a schedule keeps of a volume, of days and of weeks each.
pub const SCHEDULED_MAX: u32 = 366;

xdr_struct! {
    /// How many snapshots the servers keep of each read-write volume; none of either kind is no schedule.
    #[derive(Default)]
    pub struct SnapshotSchedule {
        /// The newest of so many days.
        pub daily: u32,
        /// The newest of so many weeks.
        pub weekly: u32,
    }
}

xdr_struct! {
    /// Who holds an operation, as he says.
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
    /// An operation that has not ended.
    #[derive(Default)]
    pub struct OpenOperation {
        /// Its number, never used again.
        pub id: u64,
        /// Which operation.
        pub word: Text,
        /// Number of the group's read-write volume.
        pub volume: VolumeId,
        /// The volume's name.
        pub name: Text,
        /// Who holds it.
        pub holder: OperationHolder,
        /// The last step written.
        pub step: Text,
        /// What is needed to resume it.
        pub detail: Detail,
        /// When it began.
        pub since: UnixSeconds,
        /// When its holder was last heard of.
        pub heard: UnixSeconds,
        /// Whether its lease is over, so that others may take it over.
        pub lapsed: bool,
    }
}
