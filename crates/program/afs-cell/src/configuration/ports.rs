//! Table of the UDP ports of the servers of a cell (docs/protocol/operations.md "1. Ports and services").

use std::net::{Ipv4Addr, SocketAddr};

/// Lowest base port; lower ports are reserved for root.
pub const BASE_PORT_MIN: u16 = 1024;
/// Highest base port: seven more ports follow it.
pub const BASE_PORT_MAX: u16 = u16::MAX - 7;

/// Ports of one cell: the well-known ones, or the same offsets from another base port than 7000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    base: u16,
}

impl Ports {
    /// The ports for a base port, which is that of the file server.
    #[must_use]
    pub fn from(base: u16) -> Self {
        Self { base: base.min(BASE_PORT_MAX) }
    }

    /// The base port.
    #[must_use]
    pub fn base(self) -> u16 {
        self.base
    }

    /// The file service: 7000.
    #[must_use]
    pub fn file(self) -> u16 {
        self.base
    }

    /// The client's callback service: 7001.
    #[must_use]
    pub fn callback(self) -> u16 {
        self.base + 1
    }

    /// The protection service: 7002.
    #[must_use]
    pub fn protection(self) -> u16 {
        self.base + 2
    }

    /// The location service: 7003.
    #[must_use]
    pub fn location(self) -> u16 {
        self.base + 3
    }

    /// The volume service: 7005.
    #[must_use]
    pub fn volume(self) -> u16 {
        self.base + 5
    }

    /// The overseer service: 7007.
    #[must_use]
    pub fn overseer(self) -> u16 {
        self.base + 7
    }

    /// A port at an address.
    pub(crate) fn at(address: Ipv4Addr, port: u16) -> SocketAddr {
        SocketAddr::from((address, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ports_keep_their_distances() {
        let ports = Ports::from(7000);
        assert_eq!(
            (ports.file(), ports.callback(), ports.protection(), ports.location(), ports.volume()),
            (7000, 7001, 7002, 7003, 7005)
        );
        assert_eq!(ports.overseer(), 7007);
        assert_eq!(Ports::from(u16::MAX).overseer(), u16::MAX);
    }
}
