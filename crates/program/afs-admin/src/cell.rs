//! Addresses of a cell's servers.

use std::net::{Ipv4Addr, SocketAddr};

/// The servers of a cell, as far as a tool must know them in advance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its location servers, in order of preference. At least one.
    pub location: Vec<SocketAddr>,
    /// Port of the volume service at every file server: 7005 in an ordinary cell.
    pub volume_port: u16,
    /// Port of the file service at every file server: 7000 in an ordinary cell.
    pub file_port: u16,
}

impl Cell {
    /// A cell whose file servers are at `base_port`, and the other services as far from it as they are from 7000.
    #[must_use]
    pub fn new(location: &[Ipv4Addr], base_port: u16) -> Self {
        let location = location.iter().map(|server| SocketAddr::from((*server, base_port.saturating_add(3))));
        Self { location: location.collect(), volume_port: base_port.saturating_add(5), file_port: base_port }
    }
}
