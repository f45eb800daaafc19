//! Holder of an advisory lock: a client machine, as recognised after a restart too.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use afs_wire::ids::Uuid;

/// The holder of a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Holder {
    /// The machine with a permanent name.
    Uuid(Uuid),
    /// A machine known by an address alone: it has no name, or uses a name that another holds.
    Address(SocketAddr),
}

const UUID: u8 = 0;
const V4: u8 = 4;
const V6: u8 = 6;

impl Holder {
    /// Its encoding on disk (docs/format.md "Tables of the volume store").
    pub fn to_bytes(self) -> Vec<u8> {
        match self {
            Holder::Uuid(uuid) => [&[UUID], &uuid.0[..]].concat(),
            Holder::Address(address) => {
                let (kind, ip) = match address.ip() {
                    IpAddr::V4(ip) => (V4, ip.octets().to_vec()),
                    IpAddr::V6(ip) => (V6, ip.octets().to_vec()),
                };
                [&[kind], &ip[..], &address.port().to_be_bytes()].concat()
            }
        }
    }

    /// Decodes [`Holder::to_bytes`]; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        if *kind == UUID {
            return Some(Holder::Uuid(Uuid(rest.try_into().ok()?)));
        }
        let (ip, port) = rest.split_at_checked(rest.len().checked_sub(2)?)?;
        let ip = match *kind {
            V4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(ip).ok()?)),
            V6 => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(ip).ok()?)),
            _ => return None,
        };
        Some(Holder::Address(SocketAddr::new(ip, u16::from_be_bytes(port.try_into().ok()?))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_read_as_written_and_nothing_else_is() {
        let holders = [
            Holder::Uuid(Uuid([7; 16])),
            Holder::Address(SocketAddr::from(([10, 0, 0, 1], 7001))),
            Holder::Address(SocketAddr::from(([1, 2, 3, 4, 5, 6, 7, 8], 9))),
        ];
        for holder in holders {
            let bytes = holder.to_bytes();
            assert_eq!(Holder::from_bytes(&bytes), Some(holder));
            for len in 0..bytes.len() {
                assert_eq!(Holder::from_bytes(&bytes[..len]), None);
            }
        }
        assert_eq!(Holder::from_bytes(&[9; 7]), None);
    }
}
