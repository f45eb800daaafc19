//! Errors of a mount.

use afs_fuse::MountError;
use afs_venus::{CacheKeyError, VenusError};
use afs_wire::ids::{CellName, NameError};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Why a cell could not be mounted, or not be unmounted properly.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The cache directory cannot be used.
    #[error("cannot use the cache {}: {error}", .path.display())]
    Cache {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Another mount uses the cache.
    #[error("the cache {} is in use by {}", .path.display(), .holder.as_deref().unwrap_or("another mount"))]
    CacheInUse {
        /// The directory.
        path: PathBuf,
        /// Description of that mount, if it is known.
        holder: Option<String>,
    },
    /// The contents of the cache cannot be read.
    #[error("cannot open the cache {}: {error}", .path.display())]
    OpenCache {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The cache is not encrypted with the key that was given, or with one.
    #[error("cannot open the cache {}: {error}; {}", .path.display(), next_step(.error))]
    CacheKey {
        /// The directory.
        path: PathBuf,
        /// What is wrong with the key.
        error: CacheKeyError,
    },
    /// The key for callbacks cannot be created.
    #[error("cannot make a key: {0}")]
    Key(String),
    /// The socket cannot be opened.
    #[error("cannot open a socket: {0}")]
    Socket(io::Error),
    /// The system grants no threads.
    #[error("{0}")]
    Threads(io::Error),
    /// The servers belong to another cell.
    #[error("the servers given are those of the cell {name}, not of {cell}")]
    OtherCell {
        /// The requested cell.
        cell: CellName,
        /// The cell of the servers.
        name: String,
    },
    /// The name of the root volume is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The cell cannot be reached.
    #[error("cannot reach the cell {cell}: {error}")]
    Unreachable {
        /// The cell.
        cell: CellName,
        /// The error of Venus.
        error: VenusError,
    },
    /// No location server replies.
    #[error("no location server of the cell {cell} answers at {}, port {port}", listed(.servers))]
    NoServer {
        /// The cell.
        cell: CellName,
        /// Its location servers.
        servers: Vec<Ipv4Addr>,
        /// Their port.
        port: u16,
    },
    /// What was said of object stores cannot be used.
    #[error("object stores cannot be read: {0}")]
    Stores(afs_s3::ConfigError),
    /// The mount failed.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// Dirty data could not be stored.
    #[error("not everything could be stored: {0}")]
    NotStored(VenusError),
    /// The unmount failed.
    #[error("cannot unmount: {0}")]
    Unmount(io::Error),
}

fn listed(servers: &[Ipv4Addr]) -> String {
    servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What opens a cache whose key is another than the given one.
fn next_step(error: &CacheKeyError) -> &'static str {
    match error {
        CacheKeyError::Encrypted { .. } => "log in as that user, and mount with --encrypt-cache",
        CacheKeyError::NotEncrypted => {
            "give another directory with --cache, or store what `andrew fs recover` shows and remove this one"
        }
        CacheKeyError::Other { .. } => "log in as that user, or give another directory with --cache",
        CacheKeyError::Changed { .. } | CacheKeyError::File { .. } => {
            "give another directory with --cache; without its key nothing in this one can be read"
        }
    }
}

impl ClientError {
    /// Why a cache could not be opened.
    pub(super) fn of_cache(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.get_ref().and_then(|inner| inner.downcast_ref::<CacheKeyError>()) {
            Some(key) => Self::CacheKey { path, error: key.clone() },
            None => Self::OpenCache { path, error },
        }
    }
}
