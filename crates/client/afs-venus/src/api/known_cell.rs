//! A cell as a mount knows it.

use std::net::SocketAddr;

use afs_wire::ids::CellName;

/// A cell that a mount knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownCell {
    /// Its name.
    pub name: CellName,
    /// Its location servers.
    pub location_servers: Vec<SocketAddr>,
    /// Port of its file servers.
    pub file_port: u16,
    /// Whether a look-up found it, such as that of DNS; otherwise it was configured.
    pub is_found: bool,
}
