//! Drives of a file server beside its disks: their registry, how each kind is opened, what the owner asks about them, and
//! the daemon of a drive on another host.

mod adding;
mod asking;
mod attached;
mod bucket;
#[cfg(test)]
mod bucket_tests;
mod choosing;
mod daemon;
mod daemon_state;
mod drain_orders;
mod draining;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod join_key;
mod keys;
#[cfg(test)]
mod keys_tests;
mod losing;
mod offline;
#[cfg(test)]
mod offline_tests;
mod opened;
mod rebuilding;
mod registry;
mod rekeying;
mod remote;
mod removing;
mod requests;
mod table;
#[cfg(test)]
mod tests;
mod tiering;

pub(crate) use attached::AttachedDrives;
pub use bucket::{BucketPlace, BucketSettings};
pub use daemon::{DriveDaemon, DriveDaemonOptions};
pub use draining::DrainOrder;
pub use error::DrivesError;
pub use join_key::JoinKey;
pub use offline::{DriveDamage, OfflineDrive, OfflineDriveReport};
pub use registry::{DriveEntry, DriveKind, Registry};
pub use remote::RemoteSettings;
pub use requests::{
    DrainLine, DrainState, DriveAnswer, DriveCheck, DriveKeyLine, DriveLine, DriveRequest, TierLine,
    TierRequest,
};
pub use table::DrivesTable;
pub use tiering::TierOrder;
