//! Parser of `/etc/resolv.conf`: the servers of DNS.

use std::net::{IpAddr, Ipv4Addr};

/// Servers that are used, as resolver(5) says.
const SERVERS_MAX: usize = 3;

/// The servers that a file names, at most three; this machine without one. Anything else in the file is passed over.
pub(super) fn servers(text: &str) -> Vec<IpAddr> {
    let server = |line: &str| {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("nameserver"), Some(address)) => address.parse().ok(),
            _ => None,
        }
    };
    let found: Vec<IpAddr> = text.lines().filter_map(server).take(SERVERS_MAX).collect();
    if found.is_empty() { vec![Ipv4Addr::LOCALHOST.into()] } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_three_servers_count() {
        let text = "# x\nsearch example.org\nnameserver 192.0.2.1\nnameserver\t2001:db8::1 \nnameserver nonsense\n\
                    options edns0\nnameserver 192.0.2.3\nnameserver 192.0.2.4\n";
        let expected: Vec<IpAddr> =
            ["192.0.2.1", "2001:db8::1", "192.0.2.3"].into_iter().map(|ip| ip.parse().unwrap()).collect();
        assert_eq!(servers(text), expected);
        assert_eq!(servers("search example.org\n"), [IpAddr::from(Ipv4Addr::LOCALHOST)]);
    }
}
