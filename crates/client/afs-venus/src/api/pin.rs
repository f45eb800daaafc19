//! Pins: what is to be complete in the cache, and whether it is. The reply of [`crate::Venus::pins`].

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ExplainedFid, Unpromised};
use crate::error::VenusError;

/// What a pin is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PinOptions {
    /// With all that is below the directory, in its volume; else its names alone.
    pub is_recursive: bool,
    /// While no server replies it may be read as it was last promised, also after a restart of the mount.
    pub is_offline: bool,
}

/// A pinned file or directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Pinned {
    /// Names the pin on this mount until the mount ends; never reused.
    pub number: u64,
    /// Path from the root of the mount, as it was named.
    pub path: String,
    /// Its cell.
    pub cell: String,
    /// The file or directory.
    pub fid: ExplainedFid,
    /// User id of who pinned it, on this machine; `None`: unknown.
    pub uid: Option<u32>,
    /// With all that is below it.
    pub is_recursive: bool,
    /// It may be read as it was last promised while no server replies.
    #[serde(default)]
    pub is_offline: bool,
    /// That is so at present: since when, and how old is what is pinned itself.
    #[serde(default)]
    pub unpromised: Option<Unpromised>,
    /// How far it is.
    pub state: PinState,
    /// Files, directories and links that belong to it, as far as is known.
    pub objects: u64,
    /// Of these, those that are not complete in the cache.
    pub missing_objects: u64,
    /// Bytes of the files among them, as far as is known.
    pub bytes: u64,
    /// Of these, those of files that are not complete in the cache.
    pub missing_bytes: u64,
    /// Why it waits, or why something will be missing; the first of the reasons.
    pub reason: Option<String>,
}

/// How far a pin is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PinState {
    /// All of it is in the cache, and its servers have promised to tell of changes.
    Complete,
    /// What is missing is being fetched.
    Fetching,
    /// The rest is fetched when a server replies again, or when its user may follow the path.
    Waiting,
    /// The rest will not be fetched, unless something changes.
    Partial,
}

impl fmt::Display for PinState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PinState::Complete => "complete",
            PinState::Fetching => "fetching",
            PinState::Waiting => "waiting",
            PinState::Partial => "partial",
        })
    }
}

/// Why something was not pinned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unpinned {
    /// This user has pinned it.
    Twice,
    /// There are as many pins as this.
    TooMany(usize),
    /// The path is longer than 4096 bytes.
    TooLong,
    /// It is a directory of this mount, on no server.
    OnNoServer,
    /// The file is longer than all pins together may be: its length, and that, in bytes.
    TooLarge(u64, u64),
    /// This user has no pin of that path.
    None,
    /// A server, or the cache.
    Failed(VenusError),
}

impl fmt::Display for Unpinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unpinned::Twice => f.write_str("it is pinned already"),
            Unpinned::TooMany(most) => {
                write!(f, "there are {most} pins, as many as there may be; unpin something")
            }
            Unpinned::TooLong => f.write_str("the path is too long"),
            Unpinned::OnNoServer => f.write_str("it is a directory of this mount, on no server"),
            Unpinned::TooLarge(length, most) => {
                write!(f, "it has {length} bytes, and pins may take {most}, half of the cache")
            }
            Unpinned::None => f.write_str("it is not pinned by this user"),
            Unpinned::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Unpinned {}
