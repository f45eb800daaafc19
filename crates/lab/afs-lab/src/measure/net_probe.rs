//! Counters of a mount that tells none: the TCP segments and UDP datagrams of this network namespace, and the server's time.

use crate::andrew::{Counters, Probe};
use crate::bulk::Place;
use std::fs;
use std::time::Duration;

/// Reads the system's counters; those of other programs are in them, and clients in another namespace are not.
pub struct NetProbe<'a>(pub &'a Place);

impl Probe for NetProbe<'_> {
    fn read(&self) -> Option<Counters> {
        let (packets_received, packets_sent) = of_namespace()?;
        // A server that has ended, or none: the time is not known.
        let server: Duration = self.0.times().unwrap_or_default().into_iter().sum();
        let server_cpu_us = u64::try_from(server.as_micros()).unwrap_or(u64::MAX);
        Some(Counters { packets_sent, packets_received, server_cpu_us, ..Counters::default() })
    }
}

/// Segments and datagrams that this network namespace has received and sent.
pub(super) fn of_namespace() -> Option<(u64, u64)> {
    packets(&fs::read_to_string("/proc/net/snmp").ok()?)
}

/// Segments and datagrams, received and sent. The text has a line of names and a line of numbers for each protocol.
fn packets(text: &str) -> Option<(u64, u64)> {
    let tcp = numbers(text, "Tcp:", ["InSegs", "OutSegs"])?;
    let udp = numbers(text, "Udp:", ["InDatagrams", "OutDatagrams"])?;
    Some((tcp.0.checked_add(udp.0)?, tcp.1.checked_add(udp.1)?))
}

fn numbers(text: &str, protocol: &str, [received, sent]: [&str; 2]) -> Option<(u64, u64)> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let of = |wanted| {
        let mut pairs = names.split_whitespace().zip(numbers.split_whitespace());
        pairs.find(|(name, _)| *name == wanted)?.1.parse().ok()
    };
    Some((of(received)?, of(sent)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_and_datagrams_are_found_by_their_names() {
        let tcp = "Ip: InReceives\nIp: 9\nTcp: MaxConn InSegs OutSegs\nTcp: -1 30 20\n";
        let udp = "Udp: InDatagrams NoPorts OutDatagrams\nUdp: 4 9 5\n";
        assert_eq!(packets(&format!("{tcp}{udp}")), Some((34, 25)));
        for broken in ["", "Tcp: InSegs", "Tcp: InSegs OutSegs\nTcp: 1", "Tcp: InSegs OutSegs\nTcp: 1 x", tcp]
        {
            assert_eq!(packets(broken), None, "{broken}");
            assert_eq!(packets(&format!("{broken}{udp}")).is_some(), broken == tcp, "{broken}");
        }
    }
}
