//! Requests and replies of a mount's token socket.

use super::kept::KeptToken;
use super::session::SessionId;
use crate::cells::OtherCell;
use afs_venus::{Activity, Explanation, PinOptions, Pinned, Unsaved, UnsavedPiece};
use afs_wire::ids::CellName;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// A user's request to a mount. A `session` of `None` stands for the user's processes outside of all sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenRequest {
    /// Use this token from now on.
    Set {
        /// The session that gets the token.
        session: Option<SessionId>,
        /// The token.
        token: Box<KeptToken>,
    },
    /// Remove the token of a cell, or all tokens.
    Remove {
        /// The session that loses it.
        session: Option<SessionId>,
        /// The cell; `None`: all.
        cell: Option<CellName>,
    },
    /// List the tokens.
    List {
        /// The session whose tokens are listed.
        session: Option<SessionId>,
    },
    /// List the known cells and their servers.
    Cells,
    /// Tell what is known of a path, without asking a server.
    Explain {
        /// The session with whose tokens the user would use the path.
        session: Option<SessionId>,
        /// The path, from the root of the mount.
        path: Vec<u8>,
    },
    /// Tell what the mount does and has done.
    Activity {
        /// Whether the servers that are thought to be unreachable are called first.
        checks_servers: bool,
    },
    /// List the data of this user that could not be stored; for root, that of all users.
    Unsaved {
        /// Begin with the first number above this one.
        after: u64,
    },
    /// Read unsaved data.
    UnsavedPiece {
        /// Its number.
        number: u64,
        /// From here on.
        offset: u64,
    },
    /// Store unsaved data now, or drop it.
    SettleUnsaved {
        /// Its number.
        number: u64,
        /// What is done.
        how: Settle,
    },
    /// Pin what is at a path.
    Pin {
        /// The session with whose tokens the user would use the path.
        session: Option<SessionId>,
        /// What the pin is for.
        options: PinOptions,
        /// The path, from the root of the mount.
        path: Vec<u8>,
    },
    /// End this user's pins of a path; for root, those of all users.
    Unpin {
        /// The path, from the root of the mount, as it was pinned.
        path: Vec<u8>,
    },
    /// List the pins of this user; for root, those of all users.
    Pins {
        /// Begin with the first number above this one.
        after: u64,
    },
    /// Add a cell, or replace the location servers of one. For root and the user who mounted.
    AddCell {
        /// The cell.
        cell: OtherCell,
    },
    /// Give ranks to addresses of file servers. For root and the user who mounted.
    SetRanks {
        /// The addresses, at most 1024; a rank of 0 takes the rank of the address away.
        ranks: Vec<(Ipv4Addr, u16)>,
    },
    /// Read a property of an object, or set it ([`afs_venus::Venus::property`]).
    Property {
        /// The session with whose tokens the user would use the object.
        session: Option<SessionId>,
        /// The inode number under which the kernel holds the object. The client holds it open meanwhile, so that the kernel keeps it.
        inode: u64,
        /// The name of the property, at most 65,535 bytes.
        name: Vec<u8>,
        /// The new value; `None`: it is read.
        value: Option<Vec<u8>>,
    },
}

/// What is done with unsaved data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settle {
    /// It is stored now. The reply comes within seconds, if need be [`TokenReply::Waiting`].
    Retry,
    /// It is dropped.
    Discard,
}

/// A token that a mount uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldToken {
    /// The cell.
    pub cell: String,
    /// The holder's name in the cell.
    pub user: String,
    /// The groups whose rights the token does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Time of expiry, in Unix seconds; `None`: never.
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
    /// Base port of its servers, which is that of the file servers.
    pub base_port: u16,
    /// The mount that knows it.
    #[serde(default)]
    pub mount: Option<MountLocation>,
}

/// A mount and its process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountLocation {
    /// The mount point, in the mount namespace of its process.
    pub directory: PathBuf,
    /// Device number of the mounted file system, `MAJOR:MINOR`, in every mount namespace; empty before it is mounted.
    #[serde(default)]
    pub device: String,
    /// Its process.
    pub pid: u32,
    /// Whether the process also runs the servers, and therefore continues when this is unmounted.
    pub serves: bool,
}

/// A cell name as text in JSON.
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

/// Reply of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenReply {
    /// The request was carried out.
    Done,
    /// The tokens.
    Tokens(Vec<HeldToken>),
    /// The cells.
    Cells(Vec<CellLocation>),
    /// What is known of a path.
    Explained(Box<Explanation>),
    /// What the mount does.
    Activity(Box<Activity>),
    /// Unsaved data, by number; empty at the end.
    Unsaved(Vec<Unsaved>),
    /// A piece of it.
    UnsavedPiece(UnsavedPiece),
    /// Pins, by number; empty at the end.
    Pins(Vec<Pinned>),
    /// The store of unsaved data is in progress, and goes on: what it waits for, in one line for the user. The same request waits for it again.
    Waiting(String),
    /// The value of a property.
    Value(Vec<u8>),
    /// The error of a property, as a number of this system.
    Errno(i32),
    /// The request was refused: one line for the user.
    Refused(String),
}
