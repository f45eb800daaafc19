//! Errors of a mount.

use afs_fuse::MountError;
use afs_venus::VenusError;
use afs_wire::ids::{CellName, NameError};
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Why a cell was not mounted, or not unmounted in good order.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The directory of the cache cannot be used.
    #[error("cannot use the cache {}: {error}", .path.display())]
    Cache {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another mount has the cache.
    #[error("the cache {} is in use by {}", .path.display(), .holder.as_deref().unwrap_or("another mount"))]
    CacheInUse {
        /// The directory.
        path: PathBuf,
        /// The mount, if it said which it is.
        holder: Option<String>,
    },
    /// What is in the cache cannot be read.
    #[error("cannot open the cache {}: {error}", .path.display())]
    OpenCache {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// No key for callbacks.
    #[error("cannot make a key: {0}")]
    Key(String),
    /// The system refuses a socket.
    #[error("cannot open a socket: {0}")]
    Socket(io::Error),
    /// The servers are of another cell.
    #[error("the servers given are those of the cell {name}, not of {cell}")]
    OtherCell {
        /// The cell asked for.
        cell: CellName,
        /// The cell that they say they are of.
        name: String,
    },
    /// The volume at the top has no valid name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The cell cannot be reached.
    #[error("cannot reach the cell {cell}: {error}")]
    Unreachable {
        /// The cell.
        cell: CellName,
        /// Why.
        error: VenusError,
    },
    /// No location server answers.
    #[error("no location server of the cell {cell} answers at {}, port {port}", listed(.servers))]
    NoServer {
        /// The cell.
        cell: CellName,
        /// Its location servers.
        servers: Vec<Ipv4Addr>,
        /// Their port.
        port: u16,
    },
    /// The kernel does not mount.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// Dirty data that no server took.
    #[error("not everything could be stored: {0}")]
    NotStored(VenusError),
    /// The kernel does not unmount.
    #[error("cannot unmount: {0}")]
    Unmount(io::Error),
}

fn listed(servers: &[Ipv4Addr]) -> String {
    servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
