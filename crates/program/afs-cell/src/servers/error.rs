//! Errors of starting the servers of a host.

use crate::configuration::inventory::MissingFile;
use afs_db::LocationError;
use afs_db::shared::SharedError;
use afs_etcd::ConfigError;
use afs_login::BadLoginSecret;
use afs_rx::ListenError;
use afs_wire::ids::{CellName, PartitionId};
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Why the servers of a host could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state directory belongs to another cell.
    #[error("{} keeps the cell {cell}", .directory.display())]
    OtherCell {
        /// The state directory.
        directory: PathBuf,
        /// Its cell.
        cell: CellName,
    },
    /// The port is in use.
    #[error("port {} of {} is taken; stop what uses it", .0.port(), .0.ip())]
    PortTaken(SocketAddr),
    /// The address does not belong to this host.
    #[error("{} is not an address of this host", .0.ip())]
    NotOfThisHost(SocketAddr),
    /// The system refuses the socket.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// Address of the socket.
        address: SocketAddr,
        /// The error of the system.
        error: io::Error,
    },
    /// A socket does not accept a service.
    #[error("cannot offer a service: {0}")]
    Offer(#[from] ListenError),
    /// A host without databases was not given the keys of the cell.
    #[error("{} has no keys; copy the cell's KeyFileExt there, or name it with key_file", .0.display())]
    NoKeys(PathBuf),
    /// A store cannot be opened.
    #[error("cannot open {}: {why}", .path.display())]
    Store {
        /// Where it is.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// What was there at an earlier start is missing, or was changed by others.
    #[error("{}", .missing.text(.state))]
    Missing {
        /// The state directory.
        state: PathBuf,
        /// The file.
        missing: MissingFile,
    },
    /// In the place of a partition is nothing, or another one.
    #[error(
        "{}/partition.json {found}: mount its disk there, and start again; to take what is there in its place, or make a new partition if there is none: `andrew store forget {place} --state {}`",
        .path.display(), .state.display()
    )]
    NotThePartition {
        /// The directory.
        path: PathBuf,
        /// What is there, and what was expected.
        found: String,
        /// The partition's name at this server.
        place: PartitionId,
        /// The state directory.
        state: PathBuf,
    },
    /// A store is damaged.
    #[error(
        "cannot open {0}: the store is damaged: {0}/{1}; `andrew store check {0}` says what is lost, `andrew store repair {0}` keeps the rest",
        .path.display(), .what
    )]
    DamagedStore {
        /// Where it is.
        path: PathBuf,
        /// The name of a file in it, and the damage.
        what: String,
    },
    /// The first contents of a new cell cannot be created.
    #[error("cannot make the cell: {0}")]
    FirstStart(String),
    /// The secret of the login service is damaged.
    #[error("{}: {error}", .path.display())]
    LoginSecret {
        /// Its file.
        path: PathBuf,
        /// The fault.
        error: BadLoginSecret,
    },
    /// The configuration of etcd is invalid.
    #[error(transparent)]
    Etcd(#[from] ConfigError),
    /// The file with the password of etcd does not exist.
    #[error("{} is not there; write etcd's password into it", .0.display())]
    NoPassword(PathBuf),
    /// The password of etcd is not valid UTF-8.
    #[error("{} is not UTF-8 text", .0.display())]
    PasswordNotText(PathBuf),
    /// etcd does not reply, or refuses.
    #[error("cannot use the databases in etcd at {endpoints}: {error}")]
    Shared {
        /// Its servers.
        endpoints: String,
        /// The error of the shared store.
        error: SharedError,
    },
    /// The databases of this host cannot be copied into etcd.
    #[error("cannot copy the databases into etcd: {0}")]
    Copy(LocationError),
    /// Another host was interrupted while it copied its databases into etcd.
    #[error("a server had begun to copy its databases into etcd and has not finished; start that one first")]
    HalfCopied,
    /// A host that joins a cell finds no databases of that cell.
    #[error(
        "etcd has no databases of {0}, which this host joins; start the cell's first server with etcd, then this one again"
    )]
    NothingToJoin(CellName),
    /// Both etcd and this host have databases.
    #[error("etcd has the databases of the cell already, and {} has others; move it away if it is not needed", .0.display())]
    TwoDatabases(PathBuf),
    /// Databases that were copied cannot be renamed.
    #[error("cannot rename {} to {}: {error}", .from.display(), .to.display())]
    Rename {
        /// The old path.
        from: PathBuf,
        /// The new path.
        to: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The host was not joined to the cell whose databases are in etcd.
    #[error("this state directory is not of the cell {0} that is in etcd")]
    NotJoined(CellName),
    /// The membership of the host cannot be determined.
    #[error("cannot use the databases in etcd: {0}")]
    Membership(LocationError),
}

/// The error for a store of a partition or of the databases that cannot be opened.
pub(super) fn cannot_open(what: &Path, error: impl Display) -> StartError {
    StartError::Store { path: what.to_owned(), why: error.to_string() }
}
