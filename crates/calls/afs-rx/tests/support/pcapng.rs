//! Reader of UDP payloads in capture files: as much of pcapng, Ethernet, cooked capture and IPv4 as the tests need.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

/// One UDP datagram.
#[derive(Clone, Debug)]
pub struct Datagram {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub payload: Vec<u8>,
}

/// Link types: the kind of header before IP.
const ETHERNET: u16 = 1;
const RAW_IP: u16 = 101;
const COOKED: u16 = 113;
const COOKED_2: u16 = 276;

const INTERFACE_BLOCK: u32 = 1;
const PACKET_BLOCK: u32 = 6;

/// All UDP datagrams of a capture, fragments joined.
pub fn datagrams(file: &[u8]) -> Vec<Datagram> {
    let (mut links, mut out, mut fragments) = (Vec::new(), Vec::new(), Fragments::default());
    let mut rest = file;
    while rest.len() >= 12 {
        let (kind, len) = (word(rest, 0), word(rest, 4) as usize);
        let body = &rest[8..len - 4];
        match kind {
            INTERFACE_BLOCK => links.push(u16::from_le_bytes([body[0], body[1]])),
            PACKET_BLOCK => {
                let captured = word(body, 12) as usize;
                let frame = &body[20..20 + captured];
                let packet = &frame[link_header_len(links[word(body, 0) as usize])..];
                out.extend(fragments.take(packet));
            }
            _ => {}
        }
        rest = &rest[len..];
    }
    out
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn link_header_len(link: u16) -> usize {
    match link {
        ETHERNET => 14,
        RAW_IP => 0,
        COOKED => 16,
        COOKED_2 => 20,
        other => panic!("link type {other}"),
    }
}

/// Pieces of datagrams by IP identification.
#[derive(Default)]
struct Fragments(BTreeMap<u16, BTreeMap<usize, Vec<u8>>>);

impl Fragments {
    fn take(&mut self, packet: &[u8]) -> Option<Datagram> {
        const UDP: u8 = 17;
        if packet.len() < 20 || packet[0] >> 4 != 4 || packet[9] != UDP {
            return None;
        }
        let half = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        let (header, total) = (usize::from(packet[0] & 15) * 4, usize::from(half(2)));
        let (more, offset) = (half(6) & 0x2000 != 0, usize::from(half(6) & 0x1fff) * 8);
        let end = if total == 0 { packet.len() } else { total.min(packet.len()) };
        let piece = packet[header..end].to_vec();
        if !more && offset == 0 {
            return datagram(packet, &piece);
        }
        let pieces = self.0.entry(half(4)).or_default();
        pieces.insert(offset, piece);
        let whole: Vec<u8> = pieces.values().flatten().copied().collect();
        let expected = whole.get(4..6).map(|len| usize::from(u16::from_be_bytes([len[0], len[1]])));
        (pieces.contains_key(&0) && expected == Some(whole.len())).then(|| datagram(packet, &whole))?
    }
}

fn datagram(packet: &[u8], udp: &[u8]) -> Option<Datagram> {
    let host = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
    let half = |at: usize| u16::from_be_bytes([udp[at], udp[at + 1]]);
    let len = usize::from(half(4));
    let payload = udp.get(8..if len == 0 { udp.len() } else { len })?.to_vec();
    Some(Datagram {
        from: SocketAddr::from((host(12), half(0))),
        to: SocketAddr::from((host(16), half(2))),
        payload,
    })
}
