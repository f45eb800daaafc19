//! Loopback addresses that no other test uses: the whole of 127.0.0.0/8 is this machine.

use std::net::Ipv4Addr;

/// An address for the servers of a cell, which differs between test programs, and by `number` within one.
#[must_use]
pub fn own_address(number: u8) -> Ipv4Addr {
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 64 + high % 64, low, number.max(1))
}
