//! Counters of an NFS mount: the TCP segments of the client's network namespace, and the time of a server on this machine.

use crate::andrew::{Counters, Probe};
use crate::bulk::Place;
use std::fs;
use std::time::Duration;

/// Reads the system's counters; other programs' TCP is in them.
pub struct TcpProbe<'a>(pub &'a Place);

impl Probe for TcpProbe<'_> {
    fn read(&self) -> Option<Counters> {
        let (packets_received, packets_sent) = segments(&fs::read_to_string("/proc/net/snmp").ok()?)?;
        // A server that has ended, or none: the time is not known.
        let server: Duration = self.0.times().unwrap_or_default().into_iter().sum();
        let server_cpu_us = u64::try_from(server.as_micros()).unwrap_or(u64::MAX);
        Some(Counters { packets_sent, packets_received, server_cpu_us, ..Counters::default() })
    }
}

/// Segments received and sent. The text has a line of names and a line of numbers for each protocol.
fn segments(text: &str) -> Option<(u64, u64)> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let of = |wanted| {
        let mut pairs = names.split_whitespace().zip(numbers.split_whitespace());
        pairs.find(|(name, _)| *name == wanted)?.1.parse().ok()
    };
    Some((of("InSegs")?, of("OutSegs")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_by_their_names() {
        let text =
            "Ip: InReceives\nIp: 9\nTcp: MaxConn InSegs OutSegs\nTcp: -1 30 20\nUdp: InDatagrams\nUdp: 4\n";
        assert_eq!(segments(text), Some((30, 20)));
        for broken in ["", "Tcp: InSegs", "Tcp: InSegs OutSegs\nTcp: 1", "Tcp: InSegs OutSegs\nTcp: 1 x"] {
            assert_eq!(segments(broken), None, "{broken}");
        }
    }
}
