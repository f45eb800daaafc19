//! Reading all there is, to find damage before somebody needs what is damaged.

mod find;
mod repair;
mod state;

pub use state::{ScrubRound, ScrubState};

use std::fmt;

use afs_wire::ids::{DataVersion, Uniquifier, VnodeId, VolumeId};

use crate::ids::SlotIndex;
use crate::located::LocatedChunk;

/// How far a scrub has come. A new one begins with the first volume.
#[derive(Clone, Debug, Default)]
pub struct Scrub {
    volume: VolumeId,
    after: VnodeId,
    /// The file in whose middle the last step ended, and the first slot to look at.
    within: Option<(VnodeId, SlotIndex)>,
}

/// What a step of a scrub has seen.
#[derive(Clone, Debug, Default)]
pub struct ScrubReport {
    /// Whether everything was looked at; the next step begins again.
    pub complete: bool,
    /// Vnodes whose records were looked at.
    pub vnodes: u64,
    /// Chunks that were read.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is damaged.
    pub bad: Vec<BadData>,
}

/// Damage, and what file of what volume has it. Of several volumes that share it the oldest state is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadData {
    /// The volume.
    pub volume: VolumeId,
    /// The vnode.
    pub vnode: VnodeId,
    /// Its uniquifier, 0 where its record cannot be read.
    pub unique: Uniquifier,
    /// The version of the data that is damaged. A replica with the same fid and version has the same bytes.
    pub data_version: DataVersion,
    /// What is damaged of it.
    pub part: BadPart,
}

/// What is damaged of a vnode.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadPart {
    /// Its record.
    Record,
    /// A directory's pages contradict each other.
    Directory(String),
    /// The row that tells where a mebibyte of its data is.
    Slot {
        /// The first byte of that mebibyte.
        position: u64,
    },
    /// Bytes on the drive.
    Chunk {
        /// The first byte of the file that they are.
        position: u64,
        /// How many there are.
        len: u64,
        /// What the drive said.
        what: String,
        /// The chunk they are in; [`VolumeStore::repair`](crate::VolumeStore::repair) can replace it where they are all of it.
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
