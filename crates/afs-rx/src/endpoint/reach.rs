//! Address validation: a client proves that it receives what is sent to its address, and is sent little before.
//!
//! Source: docs/protocol/rx.md "9. Keepalive", reachability check. The limit of three times is that of RFC 9000,
//! section 8.1.

use super::Endpoint;
use crate::Instant;
use crate::connection::Connection;
use crate::ids::Side;
use crate::slab::Key;
use crate::stats::Drop;
use rand_chacha::rand_core::Rng;
use std::net::SocketAddr;

/// Bytes sent to an address that is not proven, for each byte that came from it.
pub(super) const AMPLIFICATION_MAX: usize = 3;
/// The numbers of a connection's pings begin up to so far above one: who does not see the ping cannot answer it.
const SERIAL_BITS: u32 = 24;

impl Connection {
    /// Whether the client's address has to be proven.
    fn is_limited(&self) -> bool {
        self.reachability_check && self.side() == Side::Server
    }
}

impl Endpoint {
    /// The client's address is proven: a ping to it was answered, or a challenge.
    pub(super) fn prove_address(&mut self, now: Instant, key: Key) {
        let Some(peer) = self.connections.slab.get(key).map(|connection| connection.peer) else { return };
        if let Some(peer) = self.peers.get_mut(peer) {
            self.strangers.prove(peer, now + self.config.reachable_for);
        }
    }

    /// Whether an answer to `serial` proves that a ping of this connection was seen.
    pub(super) fn is_ping_of(&self, key: Key, serial: u32) -> bool {
        let Some(connection) = self.connections.slab.get(key) else { return false };
        match connection.reach_serial {
            Some(first) => serial.wrapping_sub(first) <= connection.last_serial().wrapping_sub(first),
            None => !connection.is_limited(),
        }
    }

    /// Takes the connection's serials to where they cannot be guessed, before its first ping.
    pub(super) fn hide_serials(&mut self, key: Key) {
        let jump = self.random.next_u32() >> (u32::BITS - SERIAL_BITS);
        if let Some(connection) = self.connection_mut(key)
            && connection.reach_serial.is_none()
        {
            connection.skip_serials(jump);
            connection.reach_serial = Some(connection.last_serial().wrapping_add(1));
        }
    }

    /// So many bytes came from the address: three times as many may go there.
    pub(super) fn credit(&mut self, from: SocketAddr, bytes: usize) {
        let Some(peer) = self.peers_by_address.get(&from).and_then(|key| self.peers.get_mut(*key)) else {
            return;
        };
        if !peer.is_proven {
            peer.credit = peer.credit.saturating_add(bytes.saturating_mul(AMPLIFICATION_MAX));
        }
    }

    /// Whether so many bytes may go to the connection's client now; if so, they are taken off its credit.
    pub(super) fn may_send(&mut self, key: Key, bytes: usize) -> bool {
        let Some(connection) = self.connections.slab.get(key).filter(|found| found.is_limited()) else {
            return true;
        };
        let Some(peer) = self.peers.get_mut(connection.peer).filter(|peer| !peer.is_proven) else {
            return true;
        };
        let left = peer.credit.checked_sub(bytes);
        match left {
            Some(left) => peer.credit = left,
            None => self.stats.drop_packet(Drop::UnprovenAddress),
        }
        left.is_some()
    }
}
