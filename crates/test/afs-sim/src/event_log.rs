//! Event log of a simulation, and a hash of all events.

use std::collections::VecDeque;
use std::net::SocketAddr;

use afs_rpc::Instant;

/// The latest events, and a fingerprint of every event since the start.
#[derive(Debug)]
pub(crate) struct EventLog {
    lines: VecDeque<(Instant, Line)>,
    /// The notes alone, which datagrams would soon displace.
    notes: VecDeque<(Instant, String)>,
    keep: usize,
    hash: u64,
    count: u64,
}

/// One event. Formatted only when it is read.
#[derive(Debug)]
pub(crate) enum Line {
    Text(String),
    Datagram {
        from: SocketAddr,
        to: SocketAddr,
        len: usize,
        head: Head,
        fate: Fate,
    },
    /// A segment of a stream that arrived.
    Segment {
        from: SocketAddr,
        to: SocketAddr,
        len: usize,
        kind: &'static str,
    },
}

/// The start of a datagram, where an Rx packet has its header: docs/protocol/rx.md "2. Packet header".
pub(crate) type Head = [u8; 28];

/// Fate of a datagram in the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Sent,
    Lost,
    Doubled,
    Cut,
    NoPort,
    Overflow,
    Asleep,
}

impl EventLog {
    pub(crate) fn new(keep: usize) -> Self {
        Self { lines: VecDeque::new(), notes: VecDeque::new(), keep, hash: FNV_OFFSET, count: 0 }
    }

    pub(crate) fn add(&mut self, at: Instant, line: Line) {
        self.absorb(&at.as_nanos().to_le_bytes());
        match &line {
            Line::Text(text) => self.absorb(text.as_bytes()),
            Line::Datagram { len, head, fate, .. } => {
                self.absorb(&[*fate as u8]);
                self.absorb(&len.to_le_bytes());
                self.absorb(head);
            }
            Line::Segment { len, kind, .. } => {
                self.absorb(kind.as_bytes());
                self.absorb(&len.to_le_bytes());
            }
        }
        self.count += 1;
        if self.keep == 0 {
            return;
        }
        if let Line::Text(text) = &line {
            push(&mut self.notes, self.keep, (at, text.clone()));
        }
        push(&mut self.lines, self.keep, (at, line));
    }

    fn absorb(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
        }
    }

    pub(crate) fn tail(&self, lines: usize) -> String {
        let skip = self.lines.len().saturating_sub(lines);
        self.lines.iter().skip(skip).map(|(at, line)| words(*at, line)).collect()
    }

    pub(crate) fn notes(&self, lines: usize) -> String {
        let skip = self.notes.len().saturating_sub(lines);
        self.notes.iter().skip(skip).map(|(at, text)| format!("{:>14.6}  {text}\n", seconds(*at))).collect()
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.hash ^ self.count
    }
}

fn push<T>(lines: &mut VecDeque<T>, keep: usize, line: T) {
    if lines.len() == keep {
        lines.pop_front();
    }
    lines.push_back(line);
}

fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}

fn words(at: Instant, line: &Line) -> String {
    let seconds = seconds(at);
    match line {
        Line::Text(text) => format!("{seconds:>14.6}  {text}\n"),
        Line::Datagram { from, to, len, head, fate } => {
            format!("{seconds:>14.6}  {from} > {to} {len} bytes {fate:?} {}\n", rx_words(*len, head))
        }
        Line::Segment { from, to, len, kind } => {
            format!("{seconds:>14.6}  {from} > {to} {kind} of {len} bytes of a stream\n")
        }
    }
}

/// The Rx header of a datagram that is long enough to have one.
fn rx_words(len: usize, head: &Head) -> String {
    if len < head.len() {
        return String::new();
    }
    let word = |i: usize| u32::from_be_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
    let kind = match head[20] {
        1 => "DATA",
        2 => "ACK",
        3 => "BUSY",
        4 => "ABORT",
        5 => "ACKALL",
        6 => "CHALLENGE",
        7 => "RESPONSE",
        8 => "DEBUG",
        _ => "?",
    };
    let service = u16::from_be_bytes([head[26], head[27]]);
    format!(
        "{kind} flags {:02x} cid {:08x} call {} seq {} serial {} service {service}",
        head[21],
        word(4),
        word(8),
        word(12),
        word(16)
    )
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x100_0000_01b3;
