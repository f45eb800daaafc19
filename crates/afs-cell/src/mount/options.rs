//! Options of a mount.

use crate::configuration::ports::Ports;
use afs_fuse::Owner;
use afs_wire::ids::CellName;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// What is to be mounted, where, and with which cache.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The cell.
    pub cell: CellName,
    /// Its location servers.
    pub servers: Vec<Ipv4Addr>,
    /// Its ports.
    pub ports: Ports,
    /// Directory of the cache; made if it is not there. One client at a time.
    pub cache: PathBuf,
    /// Most bytes of data kept; `None`: half of what is free on the cache's disk, at most 8 GiB.
    pub cache_bytes: Option<u64>,
    /// Where to mount; an empty directory.
    pub directory: PathBuf,
    /// Other users may use the mount.
    pub allow_other: bool,
    /// The name under which the root of every volume has the volume's snapshots; `None`: they are not shown.
    pub snapshots: Option<String>,
    /// The cell's servers are in this process too, which goes on when the directory is unmounted.
    pub with_servers: bool,
    /// Whose files are shown as those of the one who mounts.
    pub owner: Option<Owner>,
}
