//! State of a peer (host and port), shared by all connections with it: sizes, windows, round trip, address
//! validation.

use crate::Instant;
use crate::config::{Config, PACKET_SIZE_DEFAULT, PACKET_SIZE_MAX, PACKET_SIZE_MIN};
use crate::packet::AckTrailer;
use crate::path_size::PathSize;
use crate::rtt::Rtt;
use crate::slab::Key;
use std::net::SocketAddr;

#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) rtt: Rtt,
    /// Largest packet, header included, that both sides would use.
    agreed_size: usize,
    pub(crate) path: PathSize,
    /// Largest packet used with it, whatever it advertises.
    pub(crate) packet_size_own: usize,
    /// The receive window it advertised last.
    pub(crate) window: u32,
    /// Congestion window at the end of its last bulk transfer.
    pub(crate) congestion_window: u32,
    pub(crate) connections: u32,
    /// Its connections that were opened here.
    pub(crate) clients: Vec<Key>,
    /// When the network last reported it unreachable.
    pub(crate) unreachable_at: Option<Instant>,
    /// Counted among the peers without a connection.
    pub(crate) is_idle: bool,
    /// When the last connection was removed.
    pub(crate) idle_since: Instant,
    /// Until when it counts as reachable at this address.
    pub(crate) reachable_until: Instant,
    /// Its address is validated: it has shown that it receives what is sent to it.
    pub(crate) is_validated: bool,
    /// The connection that pinged it last for its newest call: that one alone repeats the ping.
    pub(crate) pinged_by: Option<Key>,
    /// Bytes that may be sent to it before that.
    pub(crate) credit: usize,
    pub(crate) sent: u64,
    pub(crate) resent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
}

/// Window of a peer that has advertised none: docs/protocol/rx.md "7. Windows, RTT, ...".
const WINDOW_INITIAL: u32 = 16;
const WINDOW_CLASSIC: u32 = 32;
const CONGESTION_WINDOW_INITIAL: u32 = 10;
/// Largest initial congestion window, so that the first packet cannot be overtaken by one that the peer takes for a
/// remainder of an old call (seq above 32).
const CONGESTION_WINDOW_INITIAL_MAX: u32 = 32;

impl Peer {
    pub(crate) fn new(address: SocketAddr, config: &Config, now: Instant) -> Self {
        let packet_size_own = config.packet_size_for(&address);
        Peer {
            address,
            rtt: Rtt::new(config.initial_rtt),
            agreed_size: packet_size_own.min(PACKET_SIZE_DEFAULT),
            path: PathSize::new(config.packet_size_before_proof(&address)),
            packet_size_own,
            window: WINDOW_INITIAL,
            congestion_window: CONGESTION_WINDOW_INITIAL,
            connections: 0,
            clients: Vec::new(),
            unreachable_at: None,
            is_idle: false,
            idle_since: now,
            reachable_until: Instant::ZERO,
            is_validated: false,
            pinged_by: None,
            credit: 0,
            sent: 0,
            resent: 0,
            bytes_sent: 0,
            bytes_received: 0,
        }
    }

    /// Largest packet, header included, sent to it.
    pub(crate) fn packet_size(&self) -> usize {
        self.path.limit(self.agreed_size)
    }

    /// [`Peer::packet_size`], if the path has not been shown to carry the larger packets that both sides would use.
    pub(crate) fn narrow_path(&self) -> Option<usize> {
        Some(self.packet_size()).filter(|size| *size < self.agreed_size)
    }

    /// The size of a ping that is to be sent now, padded, to learn whether packets of the agreed size arrive.
    pub(crate) fn path_ping(&self, now: Instant) -> Option<usize> {
        self.path.wants_ping(now, self.agreed_size).then_some(self.agreed_size)
    }

    /// Congestion window of a new call.
    pub(crate) fn initial_congestion_window(&self) -> u32 {
        self.congestion_window.clamp(CONGESTION_WINDOW_INITIAL, CONGESTION_WINDOW_INITIAL_MAX)
    }

    /// The send window of a new call. A peer with the classic window of 32 begins each call with half of it.
    pub(crate) fn initial_window(&self) -> u32 {
        match self.window > WINDOW_CLASSIC {
            true => self.window,
            false => self.window.min(WINDOW_INITIAL),
        }
    }

    /// Applies the trailer of an ACK: docs/protocol/rx.md "Accepting an ACK", step 6.
    pub(crate) fn apply_trailer(&mut self, trailer: &AckTrailer) {
        if let Some(interface) = trailer.mtu_interface {
            let whole = clamp(interface).min(self.packet_size_own);
            let most = trailer.mtu_max.map_or(PACKET_SIZE_DEFAULT, clamp);
            self.agreed_size = adjust(whole).min(most);
        }
        if let Some(window) = trailer.window {
            self.window = window.max(1);
        }
    }
}

fn clamp(advertised: u32) -> usize {
    (advertised as usize).clamp(PACKET_SIZE_MIN, PACKET_SIZE_MAX)
}

/// Rounds a size above 1444 down to whole jumbo packets, as other peers count.
fn adjust(size: usize) -> usize {
    const STEP: usize = crate::packet::JUMBO_PAYLOAD_LEN + crate::packet::JUMBO_HEADER_LEN;
    match size <= PACKET_SIZE_DEFAULT {
        true => size,
        false => PACKET_SIZE_DEFAULT + STEP * ((size - PACKET_SIZE_DEFAULT) / STEP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::new(address.parse().unwrap(), &Config::default(), Instant::ZERO)
    }

    fn trailer(max: u32, interface: u32) -> AckTrailer {
        AckTrailer {
            mtu_max: Some(max),
            mtu_interface: Some(interface),
            window: Some(0),
            jumbo_packets: Some(4),
        }
    }

    #[test]
    fn sizes_as_the_document_adjusts_them() {
        assert_eq!(adjust(1444), 1444);
        assert_eq!(adjust(5800), 5692);
        assert_eq!(adjust(600), 600);
    }

    #[test]
    fn large_packets_need_both_sides() {
        let mut far = peer("192.0.2.1:7001");
        far.apply_trailer(&trailer(16384, 16384));
        assert_eq!((far.packet_size(), far.agreed_size), (1232, 1444));
        let mut near = peer("127.0.0.1:7001");
        assert_eq!(near.packet_size(), 1444, "before it has told");
        near.apply_trailer(&trailer(5692, 1444));
        assert_eq!(near.packet_size(), 1444);
        near.apply_trailer(&trailer(16384, 16384));
        assert_eq!(near.packet_size(), 15604);
        near.apply_trailer(&trailer(0, 0));
        assert_eq!((near.packet_size(), near.window), (520, 1));
    }
}
