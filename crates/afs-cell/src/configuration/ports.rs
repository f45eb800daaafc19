//! Table of the UDP ports of the servers of a cell (docs/protocol/operations.md "1. Ports and services").

use std::net::{Ipv4Addr, SocketAddr};

/// Lowest first port: below are those that only root may use.
pub const BASE_PORT_MIN: u16 = 1024;
/// Highest first port: seven more follow it.
pub const BASE_PORT_MAX: u16 = u16::MAX - 7;

/// The ports of one cell: the well-known ones, or as far from another first port as they are from 7000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    base: u16,
}

impl Ports {
    /// The ports from `base` on, which is the file server's.
    #[must_use]
    pub fn from(base: u16) -> Self {
        Self { base: base.min(BASE_PORT_MAX) }
    }

    /// The first of them.
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
