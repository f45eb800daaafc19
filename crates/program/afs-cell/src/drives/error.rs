//! Errors of the registry of drives, of the daemon of a drive, and of joining.

use afs_files::VersionedFileError;
use afs_remote::GiveError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why something with drives did not work.
#[derive(Debug, thiserror::Error)]
pub enum DrivesError {
    /// A file of this program is damaged, or of a newer version.
    #[error("{} cannot be used: {why}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// The registry, or the state of a drive's daemon.
    #[error(transparent)]
    VersionedFile(#[from] VersionedFileError),
    /// There is no drive of this name.
    #[error("there is no drive {0:?}; `andrew drive list` shows them")]
    Unknown(String),
    /// The name is taken, or cannot be one.
    #[error("{0:?} cannot be the name of a new drive: {1}")]
    Name(String, &'static str),
    /// The text is no join key.
    #[error("this is no join key: a drive prints one at its first start")]
    NoJoinKey,
    /// The drive did not take the key.
    #[error(transparent)]
    Give(#[from] GiveError),
    /// The bucket, or what was told of it, is no good.
    #[error(transparent)]
    BucketSettings(#[from] afs_s3::ConfigError),
    /// The bucket does not serve as a drive has to.
    #[error("{place} cannot be a drive: {why}")]
    Bucket {
        /// The bucket.
        place: String,
        /// What the store said.
        why: String,
    },
    /// A drive to which files of a volume are moved.
    #[error("drive {0:?} takes files of volume {1}: `andrew vos tier {1} --off` ends that")]
    Tiered(String, u32),
    /// No files of the volume are moved.
    #[error("no files of volume {0:?} are moved to another drive; --drive says where to")]
    NoTier(String),
    /// No volume of this name is here.
    #[error("this host has no volume {0:?}")]
    NoVolume(String),
    /// The drive has no key that could be changed.
    #[error("the key of drive {0:?} cannot be changed: {1}")]
    NoKey(String, &'static str),
    /// No partition of this name.
    #[error("this host has no partition {0}")]
    NoPartition(String),
    /// The drive is used.
    #[error("drive {0:?} cannot be removed: {1}")]
    InUse(String, String),
    /// The drive cannot be drained, or be used while it is.
    #[error("drive {0:?} {1}")]
    Drain(String, String),
    /// The drives cannot have copies of each other's data.
    #[error("{0}")]
    Copies(String),
    /// A store failed.
    #[error("{0}")]
    Store(String),
    /// Another process has the drive's directory.
    #[error("{} is served by another process already", .0.display())]
    Served(PathBuf),
    /// The address cannot be used.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        error: io::Error,
    },
    /// The directory cannot be used.
    #[error("{}: {error}", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}
