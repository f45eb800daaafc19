//! Configuration of an endpoint: limits and times, with their defaults.

use core::time::Duration;
use std::net::SocketAddr;

/// Configuration of an endpoint. The defaults suit a server and a client on any network.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Largest packet, Rx header included, sent to or requested from a peer that is not on loopback. Default 1444,
    /// which every AFS-3 peer uses on Ethernet; 520 to 16384. Larger packets are sent only after the peer's acks have
    /// advertised room for them.
    pub packet_size: usize,
    /// The same for peers on a loopback address. Default 16384.
    pub packet_size_loopback: usize,
    /// Largest packet sent to a peer that is not on loopback before a padded ping has shown that larger ones arrive. Default 1232: what the path
    /// of an IPv6 packet must carry, 1280 bytes, without the headers of IPv6 and UDP. At least 520.
    pub packet_size_unproven: usize,
    /// Packets accepted in one datagram (jumbogram), as advertised. Default 1: none requested, since a jumbogram is
    /// fragmented by IP. They are decoded whatever this says. 1 to 6.
    pub jumbo_packets: u32,
    /// Bytes one call may hold received and unread; the advertised window is this divided by the packet
    /// size, 32 to 8192 packets. Default 4 MiB.
    pub receive_buffer: usize,
    /// Bytes all calls together may hold received and unread, 96 for each packet included. Above it only the next
    /// packet of a call that has nothing else to read is accepted, at most 16 KiB a call. A quarter of it is for
    /// calls that wait for admission, and for no others. Default 256 MiB.
    pub receive_buffer_total: usize,
    /// Bytes one call may hold written and unsent. Default 4 MiB.
    pub send_buffer: usize,
    /// Most packets of one call in flight. Default 8192.
    pub send_window: u32,
    /// Most equal-sized packets in one GSO batch of `poll_transmit`. Default 64; 1 where the driver cannot segment.
    pub batch_packets: usize,
    /// Longest silence from the peer before a call fails with `CallError::Unreachable`. Default 12 s, at
    /// least 6 s (raised to it). A sixth of it is the keepalive interval.
    pub dead_time: Duration,
    /// The same for an admitted call of a client whose address is validated. Default 30 s, at least `dead_time`
    /// (raised to it): longer than any client waits for a reply (kAFS: 20 s), so that the client decides when a
    /// network outage ends its call. The keepalive interval stays a sixth of `dead_time`.
    pub dead_time_incoming: Duration,
    /// Longest time a server call waits for the peer to send more of the request, or to accept more of the
    /// reply, before it fails with `CallError::Timeout`. Default 60 s.
    pub idle_time: Duration,
    /// Round trip assumed for a peer without a measurement. Default 600 ms.
    pub initial_rtt: Duration,
    /// How long a server connection without calls is kept. Default 700 s.
    pub connection_idle: Duration,
    /// The same for a connection whose client has taken no reply and is not authenticated: its source address may be
    /// forged. Default 20 s.
    pub connection_idle_unproven: Duration,
    /// How long a peer without connections is kept. Default 60 s.
    pub peer_idle: Duration,
    /// How long a peer that answered a ping counts as reachable, for services that check it. Default 600 s.
    pub reachable_for: Duration,
    /// Most connections opened by clients. Default 65536; when all are taken, one without a call is evicted, or,
    /// where those whose client has taken no reply and is not authenticated have three quarters, the oldest of these;
    /// if none is found soon the new one is dropped. Worst case about 1 KiB each.
    pub server_connections_max: usize,
    /// Most calls of clients alive at once, until their replies are acknowledged. Default 16384. Beyond it the oldest
    /// call that waits for its client's authentication or address validation is evicted; where none does, the new one
    /// is aborted with `busy_code`. A quarter is reserved for calls of authenticated clients.
    pub incoming_calls_max: usize,
    /// Most admitted calls of one host (IP address, all ports). Default 4096.
    pub incoming_calls_per_host: usize,
    /// Abort code when one of these limits is reached. Default 110 (VBUSY).
    pub busy_code: i32,
    /// Most services offered. Default 20.
    pub services_max: usize,
    /// Most peers without a connection that are kept. Default 16384, about 200 bytes each.
    pub idle_peers_max: usize,
    /// Most rxdebug queries (DEBUG and VERSION) answered in a second. Default 1000; an unvalidated address gets three
    /// times the bytes of its queries.
    pub queries_per_second: u32,
    /// Most RESPONSEs verified in a second; clients over the limit are challenged again. Default 8192.
    pub responses_per_second: u32,
    /// The same for one host, identified by one of 256 hash values. Default 256.
    pub responses_per_source: u32,
    /// Most queued packets that belong to no call (challenges, aborts, replies to rxdebug). Default 1024; more are
    /// dropped.
    pub control_packets_max: usize,
    /// Whether calls get no reply as long as no service is offered: for a server that is starting, whose callers are
    /// to retry. An endpoint that will never offer one refuses them, which spares its callers the wait. Default off.
    pub silent_until_offering: bool,
    /// Whether a client's calls with short requests ask, too, whether their path carries packets of full size, for the sake of byte streams
    /// beside them ([`Endpoint::narrow_path`](crate::Endpoint::narrow_path)). Default off.
    pub asks_paths: bool,
    /// Text of the reply to a VERSION request, truncated to 64 bytes.
    pub version: String,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            packet_size: 1444,
            packet_size_loopback: 16384,
            packet_size_unproven: 1232,
            jumbo_packets: 1,
            receive_buffer: 4 << 20,
            receive_buffer_total: 256 << 20,
            send_buffer: 4 << 20,
            send_window: 8192,
            batch_packets: 64,
            dead_time: Duration::from_secs(12),
            dead_time_incoming: Duration::from_secs(30),
            idle_time: Duration::from_secs(60),
            initial_rtt: Duration::from_millis(600),
            connection_idle: Duration::from_secs(700),
            connection_idle_unproven: Duration::from_secs(20),
            peer_idle: Duration::from_secs(60),
            reachable_for: Duration::from_secs(600),
            server_connections_max: 65536,
            incoming_calls_max: 16384,
            incoming_calls_per_host: 4096,
            busy_code: crate::error::code::BUSY,
            services_max: 20,
            idle_peers_max: 16384,
            queries_per_second: 1000,
            responses_per_second: 8192,
            responses_per_source: 256,
            control_packets_max: 1024,
            silent_until_offering: false,
            asks_paths: false,
            version: concat!("Andrew ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

impl Config {
    /// Configuration of a client that receives callbacks: the defaults, but for 512 connections opened by others. Its
    /// servers need a few each, and an evicted one is opened again by the next call on it. Its calls ask what their paths carry.
    #[must_use]
    pub fn of_client() -> Self {
        Config { server_connections_max: CLIENT_CONNECTIONS, asks_paths: true, ..Config::default() }
    }

    /// The configuration with every value clamped to its bounds.
    pub(crate) fn bounded(mut self) -> Self {
        self.packet_size = self.packet_size.clamp(PACKET_SIZE_MIN, PACKET_SIZE_MAX);
        self.packet_size_loopback = self.packet_size_loopback.clamp(PACKET_SIZE_MIN, PACKET_SIZE_MAX);
        self.packet_size_unproven = self.packet_size_unproven.max(PACKET_SIZE_MIN);
        self.jumbo_packets = self.jumbo_packets.clamp(1, 6);
        self.batch_packets = self.batch_packets.clamp(1, BATCH_PACKETS_MAX);
        self.dead_time = self.dead_time.max(DEAD_TIME_MIN);
        self.dead_time_incoming = self.dead_time_incoming.max(self.dead_time);
        self.idle_time = self.idle_time.max(self.dead_time_incoming);
        self.send_window = self.send_window.clamp(1, WINDOW_MAX);
        self.control_packets_max = self.control_packets_max.max(16);
        self
    }

    /// Largest packet used with this peer.
    pub(crate) fn packet_size_for(&self, peer: &SocketAddr) -> usize {
        match peer.ip().to_canonical().is_loopback() {
            true => self.packet_size_loopback,
            false => self.packet_size,
        }
    }

    /// Largest packet sent to this peer before a ping has shown more.
    pub(crate) fn packet_size_before_proof(&self, peer: &SocketAddr) -> usize {
        match peer.ip().to_canonical().is_loopback() {
            true => PACKET_SIZE_MAX,
            false => self.packet_size_unproven,
        }
    }

    /// Receive window in packets for a peer that sends packets up to `packet_size`.
    pub(crate) fn receive_window(&self, packet_size: usize) -> u32 {
        let packets = self.receive_buffer / packet_size.max(PACKET_SIZE_MIN);
        (packets as u32).clamp(WINDOW_MIN, WINDOW_MAX)
    }
}

const CLIENT_CONNECTIONS: usize = 512;
/// Smallest packet size used or believed: docs/protocol/rx.md "5. DATA packets, sizes, jumbograms".
pub(crate) const PACKET_SIZE_MIN: usize = 520;
/// Packet size for a peer that has not advertised one.
pub(crate) const PACKET_SIZE_DEFAULT: usize = 1444;
pub(crate) const PACKET_SIZE_MAX: usize = 16384;
/// Smallest receive window: every AFS-3 peer has this one.
pub(crate) const WINDOW_MIN: u32 = 32;
pub(crate) const WINDOW_MAX: u32 = 8192;
pub(crate) const BATCH_PACKETS_MAX: usize = 64;
/// Largest UDP payload over IPv4.
pub(crate) const BATCH_BYTES_MAX: usize = 65507;
pub(crate) const DEAD_TIME_MIN: Duration = Duration::from_secs(6);
