//! Calls of the prototype, their replies, and why there is none.

use std::fs::File;
use std::io;

/// Number of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ServerNumber(pub(super) u32);

/// Version of a file: grows by one with every change at its server. The prototype's were times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp(pub(super) u64);

/// Most bytes of a path name.
pub(super) const PATH_MAX: usize = 1024;
/// Most bytes of a file.
pub(super) const FILE_MAX: u64 = 64 << 20;
/// Most bytes of the names in a directory, with one more for each.
pub(super) const NAMES_MAX: u64 = 1 << 20;

/// A call. Paths have no leading slash.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call<'a> {
    TestAuth(Stamp),
    GetFileStat,
    /// The whole file, into a copy.
    Fetch(&'a File),
    /// The whole file, from a copy.
    Store(&'a File),
    SetFileStat,
    ListDir,
    MakeDir,
    /// A stub directory for what another server has; made by an operator.
    MakeStub(ServerNumber),
}

impl Call<'_> {
    /// Its column in Table II; what has none is `others`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::TestAuth(_) => "TestAuth",
            Self::GetFileStat => "GetFileStat",
            Self::Fetch(_) => "Fetch",
            Self::Store(_) => "Store",
            Self::SetFileStat => "SetFileStat",
            Self::ListDir => "ListDir",
            Self::MakeDir | Self::MakeStub(_) => "others",
        }
    }
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// Whether a copy is valid.
    Valid(bool),
    /// Version of what was named.
    Status(Stamp),
    /// Names in a directory.
    Names(Vec<String>),
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("there is no such name")]
    Absent,
    #[error("it is a directory where a file is needed, or the reverse, or is there already")]
    Kind,
    /// The search ended in a stub: this many components lie at another server.
    #[error("the first {prefix_components} components of it are at server {}", server.0)]
    Elsewhere { prefix_components: usize, server: ServerNumber },
    #[error("a part of it is empty, '.', '..', or begins with .admin")]
    Name,
    #[error("it, its data or its names are longer than the prototype takes")]
    Long,
    /// The prototype's files at the server, the client's copies, or the connection between them.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<rustix::io::Errno> for Refusal {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// A call that has failed.
#[derive(Debug, thiserror::Error)]
#[error("{call} of '{path}' on the prototype: {why}")]
pub(super) struct Failure {
    pub(super) call: &'static str,
    pub(super) path: String,
    pub(super) why: Refusal,
}
