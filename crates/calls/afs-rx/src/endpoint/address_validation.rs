//! Address validation: a client proves that it receives what is sent to its address; before that it is sent little.
//!
//! Source: docs/protocol/rx.md "9. Keepalive", reachability check. The limit of three times is that of RFC 9000,
//! section 8.1.

use super::Endpoint;
use crate::Instant;
use crate::connection::Connection;
use crate::ids::Side;
use crate::slab::Key;
use crate::stats::DropReason;
use rand_chacha::rand_core::Rng;
use std::net::SocketAddr;

/// Amplification limit: bytes sent to an unvalidated address for each byte received from it.
pub(super) const AMPLIFICATION_MAX: usize = 3;
/// Bits of the random offset at which the serials of a connection's pings begin: without receiving the ping, its
/// serial cannot be guessed.
const SERIAL_BITS: u32 = 24;

impl Connection {
    /// Whether the client's address must be validated.
    fn is_limited(&self) -> bool {
        self.reachability_check && self.side() == Side::Server
    }
}

impl Endpoint {
    /// The client's address is validated: it replied to a ping, or to a challenge.
    pub(super) fn validate_address(&mut self, now: Instant, key: Key) {
        let Some(peer) = self.connections.slab.get(key).map(|connection| connection.peer) else { return };
        if let Some(peer) = self.peers.get_mut(peer) {
            self.amplification.validate(peer, now + self.config.reachable_for);
        }
    }

    /// Whether a reply to `serial` proves that a ping of this connection was received.
    pub(super) fn is_ping_of(&self, key: Key, serial: u32) -> bool {
        let Some(connection) = self.connections.slab.get(key) else { return false };
        match connection.validation_serial {
            Some(first) => serial.wrapping_sub(first) <= connection.last_serial().wrapping_sub(first),
            None => !connection.is_limited(),
        }
    }

    /// Moves the connection's serials to a random offset before its first ping.
    pub(super) fn randomize_serials(&mut self, key: Key) {
        let jump = self.random.next_u32() >> (u32::BITS - SERIAL_BITS);
        if let Some(connection) = self.connection_mut(key)
            && connection.validation_serial.is_none()
        {
            connection.skip_serials(jump);
            connection.validation_serial = Some(connection.last_serial().wrapping_add(1));
        }
    }

    /// Credits three times the bytes received from the address.
    pub(super) fn credit(&mut self, from: SocketAddr, bytes: usize) {
        let Some(peer) = self.peers_by_address.get(&from).and_then(|key| self.peers.get_mut(*key)) else {
            return;
        };
        if !peer.is_validated {
            peer.credit = peer.credit.saturating_add(bytes.saturating_mul(AMPLIFICATION_MAX));
        }
    }

    /// Whether `bytes` may be sent to the connection's client now; if so, deducts them from its credit.
    pub(super) fn may_send(&mut self, key: Key, bytes: usize) -> bool {
        let Some(connection) = self.connections.slab.get(key).filter(|found| found.is_limited()) else {
            return true;
        };
        let Some(peer) = self.peers.get_mut(connection.peer).filter(|peer| !peer.is_validated) else {
            return true;
        };
        let left = peer.credit.checked_sub(bytes);
        match left {
            Some(left) => peer.credit = left,
            None => self.stats.drop_packet(DropReason::UnvalidatedAddress),
        }
        left.is_some()
    }
}
