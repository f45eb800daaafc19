//! Data whose store failed: the reply of [`crate::Venus::unsaved`].

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ExplainedFid;
use crate::error::VenusError;

/// Data of one file that no server has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unsaved {
    /// Names the data on this mount until the mount ends; never reused.
    pub number: u64,
    /// Path from the root of the mount, if known.
    pub path: Option<String>,
    /// Its cell.
    pub cell: String,
    /// The file that it was to be stored to.
    pub fid: ExplainedFid,
    /// User id of who wrote it, on this machine; `None`: unknown.
    pub uid: Option<u32>,
    /// Length of the file as it was written, in bytes.
    pub length_bytes: u64,
    /// Of these, bytes that only this machine has.
    pub unsaved_bytes: u64,
    /// Of these, bytes that are not in the cache: they were never changed here, and a copy has zeros in their place.
    pub missing_bytes: u64,
    /// True if the file here is that of the server again: the data is kept aside, and its store is not retried.
    pub is_set_aside: bool,
    /// True if it is on disk with its record, and survives the end of the mount.
    #[serde(default)]
    pub is_kept: bool,
    /// Why the last store failed; `None`: it has not been tried yet.
    pub error: Option<String>,
    /// What may help, as a sentence.
    pub advice: String,
    /// When the first store failed, in Unix seconds.
    pub since: Option<u64>,
}

/// A piece of unsaved data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnsavedPiece {
    /// Its place in the file. Bytes between it and the offset that was asked for are zeros or missing.
    pub at: u64,
    /// The bytes; empty at the end, where `at` is the length of the file.
    pub bytes: Vec<u8>,
}

/// Why an order about unsaved data was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unsettled {
    /// There is no such data any more, or it is another user's.
    Gone,
    /// A program has the file open.
    InUse,
    /// The data is set aside: to store it could overwrite what the file has become.
    SetAside,
    /// The store is in progress, and goes on: what it waits for.
    Waiting(String),
    /// The store failed, or the cache.
    Failed(VenusError),
}

impl fmt::Display for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsettled::Gone => f.write_str("it is stored by now, was discarded, or is another user's"),
            Unsettled::InUse => {
                f.write_str("a program has the file open; its close stores it, then try again")
            }
            Unsettled::SetAside => f.write_str(
                "it is set aside, as storing it could overwrite what the file has become; \
                 save it and copy it to where it belongs",
            ),
            Unsettled::Waiting(why) => write!(f, "the store is in progress: {why}"),
            Unsettled::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Unsettled {}
