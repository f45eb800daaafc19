//! Request and outcome of a fetch.

use std::ops::Range;

use afs_wire::fs::{FetchDataReply, Status};
use afs_wire::ids::{DataVersion, Fid};

/// Bytes to fetch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    pub fid: Fid,
    pub range: Range<u64>,
    /// The version whose status the caller has. `None`: the caller needs the status too.
    pub held: Option<DataVersion>,
    /// The directory in which the file was last seen.
    pub directory: Option<Fid>,
}

impl Wanted {
    /// The bytes of a range with the status of the file.
    pub fn with_status(fid: Fid, range: Range<u64>) -> Self {
        Wanted { fid, range, held: None, directory: None }
    }
}

/// The directory in which a file was last seen, as its status says.
pub(crate) fn directory_of(fid: Fid, status: &Status) -> Fid {
    Fid::new(fid.volume, status.parent, status.parent_unique)
}

/// How the bytes came.
#[derive(Clone, Debug)]
pub(crate) enum Fetched {
    /// By a call, whose reply has status and promise.
    ByCall(FetchDataReply),
    /// Without a call. The bytes are those of this version, which is the one that was held.
    OfVersion(DataVersion),
}

impl Fetched {
    /// The version of the bytes.
    pub fn version(&self) -> DataVersion {
        match self {
            Fetched::ByCall(reply) => reply.status.data_version,
            Fetched::OfVersion(version) => *version,
        }
    }

    /// The reply of the call, if there was one.
    pub fn into_reply(self) -> Option<FetchDataReply> {
        match self {
            Fetched::ByCall(reply) => Some(reply),
            Fetched::OfVersion(_) => None,
        }
    }
}
