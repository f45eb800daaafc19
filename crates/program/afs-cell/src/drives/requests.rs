//! What the owner of a cell asks about drives, as JSON on the control socket.

use super::BucketPlace;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// A request about the drives of this host's file server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriveRequest {
    /// Join a drive on another host.
    Add {
        /// Its name here.
        name: String,
        /// Where it listens.
        address: SocketAddr,
        /// Its join key.
        join_key: String,
    },
    /// Use a bucket as a drive.
    AddBucket {
        /// Its name here.
        name: String,
        /// The bucket.
        place: BucketPlace,
    },
    /// All drives.
    List,
    /// Remove a drive on which nothing is.
    Remove {
        /// Its name.
        name: String,
    },
    /// Give a drive up: it will not come back.
    Lose {
        /// Its name.
        name: String,
    },
    /// Use a drive again that was given up.
    Find {
        /// Its name.
        name: String,
    },
    /// Give a drive another key.
    Rekey {
        /// Its name.
        name: String,
    },
    /// Read all chunks on a drive, and compare them with their checksums.
    Check {
        /// Its name, or `local`.
        name: String,
    },
    /// Move everything on a drive to another one, and tell how far that is. A drain in progress continues.
    Drain {
        /// Its name, or `local`.
        name: String,
        /// The drive that takes the data, or `local`; without, the one that takes the new data of each partition.
        to: Option<String>,
        /// Bytes a second at most.
        rate: Option<u64>,
    },
    /// How far the drain of a drive is.
    Drained {
        /// Its name, or `local`.
        name: String,
    },
    /// End the drain of a drive. What was moved stays where it is.
    CancelDrain {
        /// Its name, or `local`.
        name: String,
    },
    /// Have old, large files of a volume moved to a drive, or tell how far that is.
    Tier {
        /// Its name or number.
        volume: String,
        /// Which files, and where to, in place of what was ordered before.
        order: Option<TierRequest>,
    },
    /// Have no more files of a volume moved.
    EndTier {
        /// Its name or number.
        volume: String,
    },
    /// Write new data to a drive.
    Use {
        /// Its name, or `local`.
        name: String,
        /// The partition; all of them without.
        partition: Option<String>,
        /// Drives that take copies of all data, or `local`: two at most.
        #[serde(default)]
        copies: Vec<String>,
        /// Whether two of the drives may be on one host.
        #[serde(default)]
        same_host: bool,
    },
}

impl DriveRequest {
    /// The name of the change for the audit log, and what it is about, without secrets; `None` if it only reads.
    pub(crate) fn change(&self) -> Option<(&'static str, String)> {
        let (change, name) = match self {
            Self::List | Self::Check { .. } | Self::Drained { .. } | Self::Tier { order: None, .. } => {
                return None;
            }
            Self::Add { name, address, .. } => return Some(("DriveAdd", format!("{name} at {address}"))),
            Self::AddBucket { name, .. } => ("DriveAdd", name),
            Self::Remove { name } => ("DriveRemove", name),
            Self::Lose { name } => ("DriveLose", name),
            Self::Find { name } => ("DriveFind", name),
            Self::Rekey { name } => ("DriveRekey", name),
            Self::Drain { name, .. } => ("DriveDrain", name),
            Self::CancelDrain { name } => ("DriveDrainCancel", name),
            Self::Use { name, .. } => ("DriveUse", name),
            Self::Tier { volume, .. } => ("TierSet", volume),
            Self::EndTier { volume } => ("TierEnd", volume),
        };
        Some((change, name.clone()))
    }
}

/// The answer to a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriveAnswer {
    /// It is done.
    Done,
    /// The drive is removed.
    Removed {
        /// Why something of it remains where it was.
        left: Option<String>,
    },
    /// The drives.
    List(Vec<DriveLine>),
    /// The check of a drive.
    Checked(DriveCheck),
    /// The drain of a drive.
    Drain(DrainLine),
    /// The tier of a volume.
    Tier(TierLine),
}

/// A drive in the list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DriveLine {
    /// Its name.
    pub name: String,
    /// Its id in references.
    pub id: u32,
    /// What it is.
    pub kind: String,
    /// Where it is.
    pub at: String,
    /// Partitions whose new data it takes.
    pub partitions: Vec<String>,
    /// Partitions of whose data it takes copies.
    #[serde(default)]
    pub copies: Vec<String>,
    /// Copies of the data of `partitions` that the last pass of the rebuild could not make.
    #[serde(default)]
    pub missing_copies: u64,
    /// Free bytes, as far as known.
    pub free: Option<u64>,
    /// All bytes.
    pub total: Option<u64>,
    /// Why it cannot be used now.
    pub problem: Option<String>,
    /// The key of a drive on another host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<DriveKeyLine>,
    /// Its drain, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainLine>,
}

/// The key that a file server gave a drive.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct DriveKeyLine {
    /// Its epoch: 1 is that of the key with which the drive was joined.
    pub epoch: u32,
    /// Seconds since it was given, as far as known.
    pub age: Option<u64>,
    /// Whether the next one was begun to be given, and it is not known yet whether the drive has it.
    pub changing: bool,
}

/// How far the drain of a drive is, since the start of the file server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DrainLine {
    /// Whether it is in progress.
    pub state: DrainState,
    /// Chunks that were moved.
    pub moved_chunks: u64,
    /// Bytes that were copied.
    pub moved_bytes: u64,
    /// Chunks that are still on the drive, those that wait for their discard included.
    pub left_chunks: u64,
    /// Their bytes.
    pub left_bytes: u64,
    /// Damaged chunks and rows that the present pass has met; they stay where they are.
    pub bad: u64,
    /// Why it does not go on just now.
    pub problem: Option<String>,
}

/// Which files of a volume are to be on a drive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TierRequest {
    /// The drive's name, or `local`.
    pub drive: String,
    /// Seconds since the last change, at least.
    pub age: u64,
    /// Length in bytes, at least.
    pub length: u64,
}

/// Which files of a volume are moved, and how far that is since the start of the file server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TierLine {
    /// The volume.
    pub volume: u32,
    /// The drive's name, or `local`.
    pub drive: String,
    /// Seconds since the last change, at least.
    pub age: u64,
    /// Length in bytes, at least.
    pub length: u64,
    /// Files of which something was moved.
    pub files: u64,
    /// Bytes that were copied.
    pub bytes: u64,
    /// How often all files were looked at.
    pub rounds: u64,
    /// Why it does not go on just now.
    pub problem: Option<String>,
}

/// Whether a drain is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DrainState {
    /// Data are moved, or will be.
    Draining,
    /// Nothing is on the drive.
    Drained,
}

/// What a check found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DriveCheck {
    /// Chunks that were read.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Chunks that are damaged or missing.
    pub bad: u64,
    /// The first of them, with the error.
    pub first_bad: Vec<String>,
}
