//! Requests and replies of a mount's token socket.

use super::kept::KeptToken;
use super::session::SessionId;
use afs_wire::ids::CellName;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// A user's request to a mount. A `session` of `None` means the user outside of all sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenRequest {
    /// Use this token from now on.
    Set {
        /// For whom of the user's.
        session: Option<SessionId>,
        /// The token.
        token: Box<KeptToken>,
    },
    /// Forget the token of a cell, or all of them.
    Remove {
        /// Whose.
        session: Option<SessionId>,
        /// Which; `None` is all.
        cell: Option<CellName>,
    },
    /// Which tokens are there?
    List {
        /// Whose.
        session: Option<SessionId>,
    },
    /// Which cells does the mount know, and where are their servers?
    Cells,
}

/// A token that a mount uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldToken {
    /// The cell.
    pub cell: String,
    /// Who its holder is there.
    pub user: String,
    /// When it ends, in Unix seconds; `None` is never.
    pub expires: Option<u64>,
}

/// A cell that a mount knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellLocation {
    /// The cell.
    #[serde(with = "as_text")]
    pub cell: CellName,
    /// Its database servers.
    pub servers: Vec<Ipv4Addr>,
    /// Port of its file servers; the others follow from it.
    pub base_port: u16,
    /// The mount that knows it.
    #[serde(default)]
    pub mount: Option<MountLocation>,
}

/// A mount and its process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountLocation {
    /// Where, in the mount namespace of its process.
    pub directory: PathBuf,
    /// The kernel's number of the mounted file system, `MAJOR:MINOR`, in every mount namespace; empty before it is mounted.
    #[serde(default)]
    pub device: String,
    /// Its process.
    pub pid: u32,
    /// Whether the process is that of the servers too, and goes on when this is unmounted.
    pub serves: bool,
}

/// A cell's name in JSON.
mod as_text {
    use super::CellName;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(cell: &CellName, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(cell)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<CellName, D::Error> {
        CellName::new(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// What a mount answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenReply {
    /// It is done.
    Done,
    /// The tokens.
    Tokens(Vec<HeldToken>),
    /// The cells.
    Cells(Vec<CellLocation>),
    /// It is not done; a line for a person.
    Refused(String),
}
