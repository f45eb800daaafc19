//! Addresses of a drive, from what its file server says of it.

use std::net::{IpAddr, SocketAddr};

use afs_wire::fs::DataPathReply;

/// Where a drive can be reached of which the server that was called at an address has told, in order of preference. Empty if it
/// tells of no port, or of addresses alone that are no other host's.
///
/// The address that was called comes first if it is among them: there is a route to it.
#[must_use]
pub fn addresses(reply: &DataPathReply, called: IpAddr) -> Vec<SocketAddr> {
    if reply.port == 0 {
        return Vec::new();
    }
    let mut addresses: Vec<IpAddr> = reply.addresses.iter().map(|ip| IpAddr::V4(*ip)).collect();
    if addresses.is_empty() {
        addresses.push(called);
    }
    addresses.retain(|ip| is_host(ip) && (!ip.is_loopback() || called.is_loopback()));
    addresses.sort_by_key(|ip| *ip != called);
    addresses.dedup();
    addresses.into_iter().map(|ip| SocketAddr::new(ip, reply.port)).collect()
}

/// Whether an address can be that of one other host.
fn is_host(ip: &IpAddr) -> bool {
    let is_reserved = matches!(ip, IpAddr::V4(ip) if ip.octets()[0] >= 240);
    !ip.is_unspecified() && !ip.is_multicast() && !is_reserved
}
