//! What is believed of a look-up of a cell: which names are looked up, and which addresses may come of it.

use std::net::{IpAddr, SocketAddr};

use afs_wire::ids::CellName;

use crate::location::is_reserved;

/// Location servers used of one cell: as many as OpenAFS's client uses (docs/protocol/client.md "1. Configuration files").
const SERVERS_MAX: usize = 8;
/// Longest part of a domain name (RFC 1035, section 2.3.4).
const LABEL_MAX: usize = 63;

/// The addresses that a server on another machine can have. A look-up can be forged, and must not send this machine's packets to itself,
/// to all of a network, or nowhere; the configuration may name any address.
pub(super) fn usable(mut peers: Vec<SocketAddr>) -> Vec<SocketAddr> {
    peers.retain(|peer| match peer.ip() {
        IpAddr::V4(ip) => {
            !ip.is_loopback()
                && !ip.is_unspecified()
                && !ip.is_link_local()
                && !ip.is_multicast()
                && !is_reserved(ip)
        }
        // AFS-3 has none.
        IpAddr::V6(_) => false,
    });
    peers.retain(|peer| peer.port() != 0);
    let mut seen = Vec::new();
    for peer in peers {
        if !seen.contains(&peer) && seen.len() < SERVERS_MAX {
            seen.push(peer);
        }
    }
    seen
}

/// Whether a name can be that of a domain: at least two parts of letters, digits and hyphens, the last one of at least two characters and
/// with a letter in front. Programs that look for `.hidden` or `desktop` in every directory start no look-up, and no address is one.
pub(super) fn can_be_domain(name: &CellName) -> bool {
    let mut labels = name.as_str().split('.');
    let is_label = |label: &str| {
        (1..=LABEL_MAX).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_last =
        |label: &str| label.len() > 1 && label.starts_with(|first: char| first.is_ascii_alphabetic());
    let last = labels.next_back().filter(|last| is_label(last) && is_last(last));
    last.is_some() && name.as_str().contains('.') && labels.all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_can_be_domains() {
        let can_be = |name: &str| CellName::new(name).is_ok_and(|name| can_be_domain(&name));
        for name in ["example.org", "a.b.example.org", "CELL.Example.ORG", "x1-y.example", "1.xn--p1ai"] {
            assert!(can_be(name), "{name}");
        }
        let long = format!("{}.org", "a".repeat(60));
        assert!(can_be(&long));
        for name in
            ["cell", "a.b", "192.0.2.1", "a.1b", "-a.org", "a-.org", "a_b.org", ".org", "org.", "a..org", ""]
        {
            assert!(!can_be(name), "{name}");
        }
    }

    #[test]
    fn a_look_up_names_other_machines_only_each_once_and_eight_at_most() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let bad = [
            "127.0.0.1:7003",
            "127.9.9.9:7003",
            "0.0.0.0:7003",
            "224.0.0.1:7003",
            "239.255.255.255:7003",
            "255.255.255.255:7003",
            "240.0.0.1:7003",
            "169.254.1.1:7003",
            "192.0.2.1:0",
            "[2001:db8::1]:7003",
        ];
        assert_eq!(usable(bad.into_iter().map(at).collect()), []);
        let good = at("192.0.2.1:7003");
        assert_eq!(usable(vec![good, at("127.0.0.1:7003"), good]), [good]);
        let many = (1..20).map(|n| SocketAddr::from(([192, 0, 2, n], 7003))).collect();
        assert_eq!(usable(many).len(), 8);
    }
}
