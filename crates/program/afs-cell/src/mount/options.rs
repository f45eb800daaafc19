//! Options of a mount.

use crate::cells::OtherCells;
use crate::configuration::ports::Ports;
use crate::mount::StoreOptions;
use afs_fuse::Owner;
use afs_venus::{BypassLimits, CacheSecret, DataPathConfig};
use afs_wire::ids::CellName;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

/// Options of a mount.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The cell.
    pub cell: CellName,
    /// Its location servers.
    pub servers: Vec<Ipv4Addr>,
    /// Cells beside it.
    pub other_cells: OtherCells,
    /// Its ports.
    pub ports: Ports,
    /// Directory of the cache, created if it is missing. One client uses it at a time.
    pub cache: PathBuf,
    /// Size limit of cached data, in bytes; `None`: half of the free space on the cache's disk, at most 8 GiB.
    pub cache_bytes: Option<u64>,
    /// The key of the user who mounts, for a cache that is encrypted.
    pub cache_secret: Option<CacheSecret>,
    /// Which files bypass the disk cache.
    pub bypass: BypassLimits,
    /// Whether leases of directories are taken (`docs/semantics.md` "Mounts with leases").
    pub lease: bool,
    /// How long programs wait for a server that does not reply any more ([`afs_venus::Limits::server_wait`]).
    pub server_wait: Duration,
    /// The mount point: an empty directory.
    pub directory: PathBuf,
    /// Other users may use the mount.
    pub allow_other: bool,
    /// Name of the directory of snapshots in the root of every volume; `None`: snapshots are not shown.
    pub snapshots: Option<String>,
    /// Use of the data path.
    pub data_path: DataPathConfig,
    /// Which object stores are read.
    pub stores: StoreOptions,
    /// The cell's servers are in this process, which continues when the directory is unmounted.
    pub with_servers: bool,
    /// The owner of files that is shown as the user who mounts.
    pub owner: Option<Owner>,
}
