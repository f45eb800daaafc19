//! Sockets and memory of a process of the cell, from `/proc`.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};

/// All UDP addresses that a process has bound. The unspecified address is given as loopback.
///
/// # Panics
/// If there is no such process.
#[must_use]
pub fn udp_addresses(pid: u32) -> Vec<SocketAddrV4> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
    let descriptors = descriptors.unwrap_or_else(|error| panic!("process {pid}: {error}"));
    let inodes: BTreeSet<String> = descriptors
        .filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = fs::read_to_string(format!("/proc/{pid}/net/udp")).unwrap_or_default();
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.get(9).is_some_and(|inode| inodes.contains(*inode)))
        .filter_map(|row| address(row.get(1)?))
        .collect()
}

/// Parses `0100007F:1B58`: the address in the machine's byte order, the port in the network's.
fn address(text: &str) -> Option<SocketAddrV4> {
    let (address, port) = text.split_once(':')?;
    let address = Ipv4Addr::from(u32::from_str_radix(address, 16).ok()?.to_ne_bytes());
    let address = if address.is_unspecified() { Ipv4Addr::LOCALHOST } else { address };
    Some(SocketAddrV4::new(address, u16::from_str_radix(port, 16).ok()?))
}

/// Resident memory of a process, in KiB.
///
/// # Panics
/// If there is no such process.
#[must_use]
pub fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    let status = status.unwrap_or_else(|error| panic!("process {pid}: {error}"));
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    number.unwrap_or_else(|| panic!("process {pid} has no VmRSS"))
}
