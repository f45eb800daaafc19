//! The operations, one file each.

mod backup;
mod clone;
mod convert;
mod copy;
mod create;
mod dump;
mod edit;
mod move_;
mod release;
mod remove;
mod rename;
mod restore;
mod resume;
mod single;
mod snapshot;

pub(crate) use backup::BackupPlan;
pub(crate) use convert::ConvertPlan;
pub(crate) use copy::CopyPlan;
pub(crate) use create::CreatePlan;
pub(crate) use edit::EditPlan;
pub(crate) use move_::MovePlan;
pub(crate) use release::{EditSites, ReleasePlan};
pub(crate) use remove::RemovePlan;
pub(crate) use rename::RenamePlan;
pub(crate) use restore::RestorePlan;

pub use crate::plan::Outcome;
pub use backup::{BackedUp, BackupAll};
pub use clone::CloneOptions;
pub use convert::ConvertOptions;
pub use copy::{Copied, CopyOptions};
pub use create::CreateOptions;
pub use dump::{DumpOptions, DumpSink, DumpSource, Dumped};
pub use move_::{MoveOptions, Moved};
pub use release::{ReleaseOptions, Released};
pub use remove::{RemoveOptions, Removed};
pub use restore::{Overwrite, RestoreDate, RestoreOptions, Restored};
pub use resume::Resumed;
pub use single::Fields;
pub use snapshot::Snapshot;
pub(crate) use snapshot::SnapshotPlan;
