//! Replies to rxdebug: docs/protocol/rx.md "13. DEBUG and VERSION".

use super::Endpoint;
use crate::Instant;
use crate::call::{Call, Phase};
use crate::connection::Connection;
use crate::ids::Side;
use crate::packet::{
    DEBUG_STATISTICS_LEN, DEBUG_STATS_LEN, DebugConnection, DebugPeer, DebugQuery, HEADER_LEN, Header,
    PacketType, StructWriter, flags, version_reply,
};
use crate::peer::Peer;
use crate::stats::DropReason;
use core::time::Duration;
use std::net::{IpAddr, SocketAddr};

const STATS: u32 = 1;
const ACTIVE_CONNECTIONS: u32 = 2;
const ALL_CONNECTIONS: u32 = 3;
const STATISTICS: u32 = 4;
const PEERS: u32 = 5;
/// The layout version, which tells rxdebug what fields are filled in.
const LAYOUT: u8 = b'S';
/// "-8" twice: unknown query.
const UNKNOWN_QUESTION: [u8; 8] = [0xff, 0xff, 0xff, 0xf8, 0xff, 0xff, 0xff, 0xf8];

impl Endpoint {
    /// Answers a query of a client; a packet without the client's flag is a reply itself, or a NAT keepalive, and is
    /// never answered.
    pub(super) fn reply_to_query(&mut self, now: Instant, from: SocketAddr, header: &Header, payload: &[u8]) {
        if !header.from_client() {
            self.stats.drop_packet(DropReason::UnansweredQuery);
            return;
        }
        if !self.may_reply(now) {
            self.stats.drop_packet(DropReason::TooManyQueries);
            return;
        }
        let received = HEADER_LEN + payload.len();
        let answer = Header { flags: header.flags & !flags::CLIENT_INITIATED, ..*header };
        if header.kind == PacketType::VERSION {
            let text = version_reply(&self.config.version);
            self.reply_without_connection(from, received, &answer, &text);
            return;
        }
        let Some(query) = DebugQuery::decode(payload) else {
            self.stats.drop_packet(DropReason::UnansweredQuery);
            return;
        };
        let index = query.index as usize;
        match query.kind {
            STATS => self.reply_without_connection(from, received, &answer, &self.debug_stats()),
            ACTIVE_CONNECTIONS => self.reply_without_connection(
                from,
                received,
                &answer,
                &self.debug_connection(index, true).to_bytes(),
            ),
            ALL_CONNECTIONS => self.reply_without_connection(
                from,
                received,
                &answer,
                &self.debug_connection(index, false).to_bytes(),
            ),
            STATISTICS => self.reply_without_connection(from, received, &answer, &self.debug_statistics()),
            PEERS => {
                self.reply_without_connection(from, received, &answer, &self.debug_peer(index).to_bytes())
            }
            _ => self.reply_without_connection(from, received, &answer, &UNKNOWN_QUESTION),
        }
    }

    fn may_reply(&mut self, now: Instant) -> bool {
        let (began, answered) = &mut self.queries;
        if now - *began >= Duration::from_secs(1) {
            (*began, *answered) = (now, 0);
        }
        *answered = answered.saturating_add(1);
        *answered <= self.config.queries_per_second
    }

    fn debug_stats(&self) -> [u8; DEBUG_STATS_LEN] {
        let mut out = StructWriter::new();
        // There is no packet pool that could run dry; a few are shown as free, so that rxdebug reports no shortage.
        out.u32(0, self.config.control_packets_max as u32);
        out.u32(8, self.stats.calls_received as u32);
        out.u8(14, LAYOUT);
        out.u32(20, 1);
        out.u32(28, self.config.control_packets_max as u32);
        out.0
    }

    /// Connections opened by clients; those opened here are not listed.
    fn debug_connection(&self, index: usize, only_active: bool) -> DebugConnection {
        let shown = |connection: &&Connection| {
            connection.side() == Side::Server && (!only_active || connection.has_calls())
        };
        match self.connections.slab.iter().filter(shown).nth(index) {
            Some(connection) => self.describe_connection(connection),
            None => DebugConnection::END,
        }
    }

    /// The query is not authenticated, so the numbers that name the connection and its calls on the wire are left
    /// out: where packets are not protected, they suffice to forge packets of the client.
    fn describe_connection(&self, connection: &Connection) -> DebugConnection {
        let (host, port) = host_and_port(&connection.to);
        let mut shown = DebugConnection {
            host,
            port,
            error: connection.failed.unwrap_or(0),
            is_server: true,
            security_index: connection.security_index,
            security: connection.security.report(),
            mtu: self.peers.get(connection.peer).map_or(0, |peer| peer.packet_size() as u32),
            ..DebugConnection::default()
        };
        for (index, channel) in connection.channels.iter().enumerate() {
            match channel.call.and_then(|key| self.calls.get(key)) {
                Some(call) => {
                    (shown.states[index], shown.modes[index]) = state_and_mode(call);
                    let output = u8::from(call.send.has_unacked()) << 1;
                    shown.queues[index] = u8::from(call.receive.has_packets()) | output;
                }
                // A used channel between calls is in DALLY, at the end of its stream.
                None if channel.number > 0 => (shown.states[index], shown.modes[index]) = (3, 4),
                None => {}
            }
        }
        shown
    }

    fn debug_peer(&self, index: usize) -> DebugPeer {
        self.peers
            .iter()
            .nth(index)
            .map_or(DebugPeer { host: u32::MAX, ..DebugPeer::default() }, describe_peer)
    }

    fn debug_statistics(&self) -> [u8; DEBUG_STATISTICS_LEN] {
        let mut out = StructWriter::new();
        let mut put = |index: usize, value: u64| out.u32(4 * index, value as u32);
        let stats = &self.stats;
        put(5, stats.drops(DropReason::ShortHeader) + stats.drops(DropReason::BrokenJumbogram));
        for index in 0..13 {
            put(11 + index, stats.packets_read[index]);
            put(28 + index, stats.packets_sent[index]);
        }
        put(24, stats.packets_read[0]);
        put(25, stats.packets_read[1]);
        put(26, stats.drops(DropReason::Duplicate));
        put(27, stats.drops(DropReason::NoSuchCall) + stats.drops(DropReason::OldCall));
        put(41, stats.packets_sent[1]);
        put(42, stats.pings_sent);
        put(43, stats.packets_sent[3]);
        put(44, stats.packets_sent[2]);
        put(45, stats.packets_sent[0]);
        put(46, stats.data_resent);
        put(55, stats.rtt_samples);
        put(56, self.connections.server_count() as u64);
        put(57, self.connections.client_count() as u64);
        put(58, self.peers.len() as u64);
        put(59, self.calls.len() as u64);
        put(60, self.spare_calls.len() as u64);
        put(66, stats.packets_read[2]);
        out.0
    }
}

fn state_and_mode(call: &Call) -> (u8, u8) {
    let mode = match call.is_sending() {
        _ if call.error.is_some() => 3,
        true => 1,
        false if call.receive.is_complete() => 4,
        false => 2,
    };
    match call.phase {
        Phase::Waiting => (1, mode),
        Phase::Active if call.side == Side::Server && call.send.is_finished() => (4, 4),
        Phase::Active => (2, mode),
        Phase::Over => (3, mode),
    }
}

fn describe_peer(peer: &Peer) -> DebugPeer {
    let (host, port) = host_and_port(&peer.address);
    DebugPeer {
        host,
        port,
        references: peer.connections.min(u32::from(u16::MAX)) as u16,
        rtt_ms_times_8: peer.rtt.smoothed().as_millis() as u32 * 8,
        deviation_ms_times_4: peer.rtt.deviation().as_millis() as u32 * 4,
        sent: peer.sent as u32,
        resent: peer.resent as u32,
        mtu: peer.packet_size() as u16,
        mtu_max: peer.packet_size_own as u16,
        jumbo_packets: 1,
        window: peer.congestion_window.min(u32::from(u16::MAX)) as u16,
        bytes_sent: peer.bytes_sent,
        bytes_received: peer.bytes_received,
    }
}

/// rxdebug knows IPv4 only.
fn host_and_port(address: &SocketAddr) -> (u32, u16) {
    match address.ip().to_canonical() {
        IpAddr::V4(host) => (host.to_bits(), address.port()),
        IpAddr::V6(_) => (0, address.port()),
    }
}
