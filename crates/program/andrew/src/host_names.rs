//! Look-up of the IPv4 addresses of hosts that a command line names.

use std::net::{AddrParseError, IpAddr, Ipv4Addr, ToSocketAddrs};

/// The IPv4 addresses of a host, given by its name or address. Takes as long as the name service of the machine.
///
/// # Errors
/// It has none, or its name is not known.
pub(crate) fn addresses(host: &str) -> Result<Vec<Ipv4Addr>, String> {
    if host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return host.parse().map(|address| vec![address]).map_err(|error: AddrParseError| error.to_string());
    }
    let v4 = |ip| match ip {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    };
    let found = (host, 0).to_socket_addrs();
    let found: Vec<Ipv4Addr> = found.into_iter().flatten().filter_map(|at| v4(at.ip())).collect();
    if found.is_empty() {
        return Err(format!("the host '{host}' has no IPv4 address; give the address itself"));
    }
    Ok(found)
}

/// The first of them, for options that take a server.
///
/// # Errors
/// As [`addresses`].
pub(crate) fn address(host: &str) -> Result<Ipv4Addr, String> {
    addresses(host).map(|found| found[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_its_name_or_its_address() {
        assert_eq!(address("192.0.2.1"), Ok(Ipv4Addr::new(192, 0, 2, 1)));
        assert_eq!(address("localhost"), Ok(Ipv4Addr::LOCALHOST));
        for number in ["300.1.1.1", "7", ""] {
            assert_eq!(address(number).unwrap_err(), "invalid IPv4 address syntax");
        }
        for host in ["::1", "no host"] {
            let said = address(host).unwrap_err();
            assert_eq!(said, format!("the host '{host}' has no IPv4 address; give the address itself"));
        }
    }
}
