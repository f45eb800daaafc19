//! Scrub: reads all data to find damage before a client needs the data.

mod find;
mod repair;
mod state;

pub use state::{ScrubRound, ScrubState};

use std::fmt;

use afs_wire::ids::{DataVersion, Uniquifier, VnodeId, VolumeId};

use crate::data_walk::DataWalk;
use crate::located::LocatedChunk;

/// Position of a scrub. A new one starts with the first volume.
#[derive(Clone, Debug, Default)]
pub struct Scrub {
    walk: DataWalk,
}

/// Result of a step of a scrub.
#[derive(Clone, Debug, Default)]
pub struct ScrubReport {
    /// Whether everything was checked; the next step starts again.
    pub complete: bool,
    /// Vnodes whose records were checked.
    pub vnodes: u64,
    /// Chunks that were read.
    pub chunks: u64,
    /// Bytes of these chunks.
    pub bytes: u64,
    /// Chunks on drives that could not be reached: nothing is known of them.
    pub unread: u64,
    /// Damage found.
    pub bad: Vec<BadData>,
}

/// Damaged data, with volume and file. For data shared by several volumes the oldest state is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadData {
    /// The volume.
    pub volume: VolumeId,
    /// The vnode.
    pub vnode: VnodeId,
    /// Its uniquifier, 0 if its record cannot be read.
    pub unique: Uniquifier,
    /// The version of the damaged data. A replica with the same fid and version has the same bytes.
    pub data_version: DataVersion,
    /// The damaged part.
    pub part: BadPart,
}

/// The damaged part of a vnode.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadPart {
    /// Its record.
    Record,
    /// A directory with contradictory pages.
    Directory(String),
    /// The row of a mebibyte of its data.
    Slot {
        /// The first byte of that mebibyte.
        position: u64,
    },
    /// Bytes on the drive.
    Chunk {
        /// Their position in the file.
        position: u64,
        /// Their number.
        len: u64,
        /// The drive's error.
        what: String,
        /// Their chunk; [`VolumeStore::repair`](crate::VolumeStore::repair) can replace it if they are all of
        /// it.
        chunk: LocatedChunk,
    },
}

impl fmt::Display for BadPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record => write!(f, "its record cannot be read"),
            Self::Directory(what) => write!(f, "its directory is damaged: {what}"),
            Self::Slot { position } => write!(f, "where its data from byte {position} on is cannot be read"),
            Self::Chunk { position, len, what, .. } => {
                write!(f, "bytes {position} to {} are damaged: {what}", position + len)
            }
        }
    }
}
