//! Errors of starting the servers of a host.

use afs_db::LocationError;
use afs_db::shared::SharedError;
use afs_etcd::ConfigError;
use afs_login::BadLoginSecret;
use afs_rx::ListenError;
use afs_wire::ids::CellName;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why servers were not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state directory is of another cell.
    #[error("{} keeps the cell {cell}", .directory.display())]
    OtherCell {
        /// The state directory.
        directory: PathBuf,
        /// Its cell.
        cell: CellName,
    },
    /// Another program has the port.
    #[error("port {} of {} is taken; stop what uses it", .0.port(), .0.ip())]
    PortTaken(SocketAddr),
    /// The address is not one of this host.
    #[error("{} is not an address of this host", .0.ip())]
    NotOfThisHost(SocketAddr),
    /// The system refuses the socket.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// A socket does not take a service.
    #[error("cannot offer a service: {0}")]
    Offer(#[from] ListenError),
    /// A host without databases has to be given the keys of the cell.
    #[error("{} has no keys; copy the cell's KeyFileExt there, or name it with key_file", .0.display())]
    NoKeys(PathBuf),
    /// A store cannot be opened.
    #[error("cannot open {}: {why}", .path.display())]
    Store {
        /// Where it is.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// What a new cell begins with cannot be made.
    #[error("cannot make the cell: {0}")]
    FirstStart(String),
    /// The secret of the login service is damaged.
    #[error("{}: {error}", .path.display())]
    LoginSecret {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        error: BadLoginSecret,
    },
    /// The configuration of etcd has no meaning.
    #[error(transparent)]
    Etcd(#[from] ConfigError),
    /// There is no file with the password of etcd.
    #[error("{} is not there; write etcd's password into it", .0.display())]
    NoPassword(PathBuf),
    /// The password of etcd is not text.
    #[error("{} is no text", .0.display())]
    PasswordNotText(PathBuf),
    /// etcd does not answer, or refuses.
    #[error("cannot use the databases in etcd at {endpoints}: {error}")]
    Shared {
        /// Its servers.
        endpoints: String,
        /// Why.
        error: SharedError,
    },
    /// The databases of this host cannot be copied into etcd.
    #[error("cannot copy the databases into etcd: {0}")]
    Copy(LocationError),
    /// Another host was interrupted while it copied its databases into etcd.
    #[error("a server had begun to copy its databases into etcd and has not finished; start that one first")]
    HalfCopied,
    /// etcd has databases, and this host has others.
    #[error("etcd has the databases of the cell already, and {} has others; move it away if it is not needed", .0.display())]
    TwoDatabases(PathBuf),
    /// Databases that were copied cannot be put aside.
    #[error("cannot rename {} to {}: {error}", .from.display(), .to.display())]
    Rename {
        /// What they are called.
        from: PathBuf,
        /// What they shall be called.
        to: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The host was not joined to the cell in etcd.
    #[error("this state directory is not of the cell {0} that is in etcd")]
    NotJoined(CellName),
    /// Whether the host was joined cannot be found out.
    #[error("cannot use the databases in etcd: {0}")]
    Membership(LocationError),
}
