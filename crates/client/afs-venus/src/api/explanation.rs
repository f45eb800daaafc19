//! What this machine knows of one path: the reply of [`crate::Venus::explain`].
//!
//! Durations are in whole seconds of the machine's clock, sizes in bytes. What is not known, or not for this user, is `None`.

use serde::{Deserialize, Serialize};

/// What is known of a path, without asking any server.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Explanation {
    /// How far the path could be followed: from the root of the mount, without a `/` in front.
    pub known_path: String,
    /// Why no further; `None`: to its end.
    pub unknown: Option<String>,
    /// The cell.
    pub cell: Option<String>,
    /// The fid.
    pub fid: Option<ExplainedFid>,
    /// `file`, `directory`, `symbolic link` or `mount point`.
    pub kind: Option<String>,
    /// The volume.
    pub volume: Option<ExplainedVolume>,
    /// Its servers, the one that is used first. At most 16.
    pub servers: Vec<ExplainedServer>,
    /// The callback promise.
    pub promise: Option<ExplainedPromise>,
    /// The cached status.
    pub status: Option<ExplainedStatus>,
    /// What is cached of the data of a file.
    pub data: Option<ExplainedData>,
    /// Whether a file bypasses the disk cache.
    pub bypass: Option<ExplainedBypass>,
    /// The rights of the user.
    pub rights: Option<ExplainedRights>,
    /// The locks of this machine on a file.
    pub locks: Option<ExplainedLocks>,
}

/// A fid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExplainedFid {
    /// Number of the volume.
    pub volume: u32,
    /// Number of the vnode.
    pub vnode: u32,
    /// Its uniquifier.
    pub unique: u32,
}

/// A volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExplainedVolume {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// `read-write`, `read-only` or `backup`, as the location database says.
    pub kind: String,
    /// Since the location service was asked.
    pub located_seconds_ago: u64,
}

/// A server that has the volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExplainedServer {
    /// Its addresses with ports, nearest first.
    pub addresses: Vec<String>,
    /// Whether calls go there.
    pub is_used: bool,
    /// Why they do, or do not.
    pub reason: String,
    /// For how long it has not replied; `None`: it is reachable as far as is known.
    pub unreachable_seconds: Option<u64>,
    /// Since its last reply; `None`: it has never replied to this mount.
    pub last_reply_seconds_ago: Option<u64>,
    /// Round trip to its nearest address, in microseconds.
    pub round_trip_micros: Option<u64>,
    /// `in use`, `idle`, `none`, `off`, `not asked for`, or `failed: ` and why.
    pub data_path: String,
    /// The drives to which it has sent this mount. At most 32.
    #[serde(default)]
    pub drives: Vec<ExplainedDrive>,
    /// Its last errors, the latest first. At most 8.
    pub errors: Vec<ExplainedError>,
}

/// A drive on another host, at which this mount reads and stores what a server has there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExplainedDrive {
    /// Its address with port.
    pub address: String,
    /// `in use`, `connecting`, `idle`, or `failed: ` and why.
    pub state: String,
    /// How long it is left alone from now, after failures: the file server is asked instead.
    pub paused_seconds: Option<u64>,
}

/// An error of a server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExplainedError {
    /// When it was seen last.
    pub seconds_ago: u64,
    /// The call.
    pub operation: String,
    /// What happened.
    pub error: String,
    /// How often in a row.
    pub times: u32,
}

/// A callback promise.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExplainedPromise {
    /// `held`, `broken`, `expired` or `none`.
    pub state: String,
    /// Whether it is for the whole volume, as of a read-only one.
    pub is_of_volume: bool,
    /// How long it is relied on from now.
    pub seconds_left: Option<u64>,
    /// Without one the object is read as it was last promised, because no server replies and it is pinned for that.
    #[serde(default)]
    pub unpromised: Option<Unpromised>,
}

/// For how long something has been read without a promise, and how old it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unpromised {
    /// For how long objects of its volume have been read so.
    pub since_seconds_ago: u64,
    /// When its server was last known to promise it; it may have changed since.
    pub as_of_seconds_ago: u64,
}

/// A cached status.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExplainedStatus {
    /// Whether it is shown without asking a server.
    pub is_current: bool,
    /// The data version.
    pub data_version: u64,
    /// The length at the server.
    pub length_bytes: u64,
    /// The permission bits, in octal digits.
    #[serde(default)]
    pub mode: String,
}

/// What is cached of the data of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExplainedData {
    /// The length here.
    pub length_bytes: u64,
    /// Cached, dirty or not.
    pub cached_bytes: Option<u64>,
    /// Not stored at the server yet.
    pub dirty_bytes: u64,
    /// Being fetched.
    pub fetching_bytes: u64,
    /// Open handles of programs on this machine.
    pub open_handles: u32,
    /// Failed stores in a row.
    pub failed_stores: u32,
}

/// Whether a file bypasses the disk cache.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExplainedBypass {
    /// Whether it does.
    pub is_bypassed: bool,
    /// The rule that decides: `request`, `file name`, `volume name`, `length`, `open for writing` or `none`.
    pub reason: String,
    /// `on`, `off` or `auto`.
    pub request: String,
}

/// The rights of a user.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExplainedRights {
    /// As the server reported them last, letters of `rlidwka`; `None`: not reported to this user.
    pub rights: Option<String>,
    /// Of these, those of everybody.
    pub everybody: Option<String>,
    /// Since they were reported; `None`: they are those of everybody, or as they were when the object was promised last.
    pub seconds_ago: Option<u64>,
    /// `token`, `mount`, `expired token` or `anonymous`.
    pub source: String,
    /// The name in the token.
    pub user: Option<String>,
    /// How long the token is valid; `None`: for ever, or there is none.
    pub token_seconds_left: Option<u64>,
}

/// The locks of this machine on a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExplainedLocks {
    /// `read` or `write`: the lock held at the server.
    pub at_server: Option<String>,
    /// Whether a lock was lost, so that what is dirty is not stored.
    pub is_lost: bool,
    /// Those of programs. At most 32.
    pub here: Vec<ExplainedLock>,
}

/// A lock of a program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExplainedLock {
    /// `read` or `write`.
    pub kind: String,
    /// First byte.
    pub first: u64,
    /// Last byte; `None`: to the end.
    pub last: Option<u64>,
    /// The process that took it.
    pub pid: u32,
}
