//! Timers of an endpoint: retransmission, delayed acks, keepalive, dead time, idle connections and peers.

use super::Endpoint;
use crate::Instant;
use crate::call::{Expired, NarrowPath, Timeout};
use crate::error::{CallError, code};
use crate::ids::Side;
use crate::packet::reason;
use crate::slab::Key;
use crate::timer::Owner;
use core::time::Duration;
use std::net::SocketAddr;

/// An owner that was just examined is not examined again sooner.
const RESOLUTION: Duration = Duration::from_micros(100);
/// Shortest wait for the answer to a ping.
const PING_ANSWERED_MIN: Duration = Duration::from_millis(100);
/// At most one report of an unreachable peer counts in this interval.
const HINT_INTERVAL: Duration = Duration::from_secs(1);

impl Endpoint {
    /// Handles the expired timers. Must be called at `poll_timeout`; earlier or later does no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(owner) = self.timers.pop_due(now) {
            match owner {
                Owner::Connection(key) => self.connection_timeout(now, key),
                Owner::Peer(key) => self.peer_timeout(now, key),
            }
        }
    }

    /// The network reported `peer` unreachable (an ICMP error). Such a message is easily forged, so it is a hint:
    /// client calls to the peer ping it at once, and fail with `CallError::Unreachable` only if nothing arrives within
    /// a second and the peer's fudge, instead of the dead time. One hint a second counts. Cost: one visit of every
    /// client connection to this peer.
    pub fn handle_unreachable(&mut self, now: Instant, peer: SocketAddr) {
        let found = self.peers_by_address.get(&peer).and_then(|key| self.peers.get_mut(*key));
        let Some(peer) = found.filter(|peer| peer.unreachable_at.is_none_or(|at| now >= at + HINT_INTERVAL))
        else {
            return;
        };
        peer.unreachable_at = Some(now);
        let clients = peer.clients.iter().filter_map(|client| self.connections.slab.get(*client));
        let calls: Vec<Key> = clients.flat_map(|connection| connection.calls()).flatten().collect();
        for key in calls {
            if let Some(call) = self.calls.get_mut(key) {
                call.suspect(now);
            }
            self.reschedule(key);
        }
    }

    fn connection_timeout(&mut self, now: Instant, key: Key) {
        self.own_timeouts(now, key);
        let Some(connection) = self.connections.slab.get(key) else { return };
        for call in connection.calls().into_iter().flatten() {
            self.call_timeout(now, call);
        }
        let Some(connection) = self.connections.slab.get(key) else { return };
        let mut next = connection.own_deadline();
        for call in connection.calls().into_iter().flatten() {
            next = next.min(self.calls.get(call).map_or(Instant::FAR_FUTURE, |call| call.deadline()));
        }
        if connection.side() == Side::Server && !connection.has_calls() {
            let gone_at = connection.last_active + self.idle_time_of(connection);
            if now >= gone_at {
                self.remove_connection(now, key);
                return;
            }
            next = next.min(gone_at);
        }
        if next.is_set() {
            // A timer armed above may be due already; the pause prevents a busy loop.
            self.timers.disarm(Owner::Connection(key));
            self.timers.arm(Owner::Connection(key), next.max(now + RESOLUTION));
        }
    }

    /// Arms the idle timer of a server connection.
    pub(super) fn arm_idle_timer(&mut self, now: Instant, key: Key) {
        let Some(connection) = self.connections.slab.get(key) else { return };
        self.timers.arm(Owner::Connection(key), now + self.idle_time_of(connection));
    }

    fn own_timeouts(&mut self, now: Instant, key: Key) {
        let Some(connection) = self.connection_mut(key) else { return };
        let due = connection.channels.map(|channel| channel.final_ack_at <= now);
        let challenge = connection.challenge.again_at <= now;
        let ping = connection.validation_ping_at <= now;
        let refusal = connection.failed.filter(|_| connection.abort_at <= now);
        for (channel, due) in due.into_iter().enumerate() {
            if due {
                self.push_final_ack(now, key, channel, reason::DELAY, 0);
            }
        }
        if let Some(code) = refusal {
            if let Some(connection) = self.connection_mut(key) {
                connection.abort_at = Instant::FAR_FUTURE;
            }
            self.push_connection_abort(now, key, code);
        }
        if challenge {
            self.send_challenge(now, key);
        }
        if ping {
            self.validation_timeout(now, key);
        }
    }

    fn call_timeout(&mut self, now: Instant, key: Key) {
        let Some(call) = self.calls.get_mut(key) else { return };
        if let Some(peer) = self.connections.slab.get(call.connection).and_then(|c| self.peers.get(c.peer)) {
            // The fudge follows the measured round trip.
            call.limits.dead_with_fudge = call.limits.dead + peer.rtt.fudge();
        }
        if let Some(expired) = call.expired(now) {
            self.doubt_path(now, key);
            self.expire(now, key, expired);
            return;
        }
        if self.decide_path(now, key) {
            return;
        }
        let Some(call) = self.calls.get_mut(key) else { return };
        call.check_keepalive(now);
        call.check_repeating(now);
        call.ack.handle_timeout(now);
        self.send_timeouts(now, key);
        self.reschedule(key);
    }

    fn send_timeouts(&mut self, now: Instant, key: Key) {
        let Some(call) = self.calls.get_mut(key) else { return };
        let Some(connection) = self.connections.slab.get(call.connection) else { return };
        let Some(peer) = self.peers.get(connection.peer) else { return };
        if call.send.reorder_at <= now {
            self.stats.losses += u64::from(call.send.detect_losses(now, &peer.rtt));
        }
        if call.send.resend_at <= now {
            let timeout = call.send.handle_timeout();
            match timeout == Timeout::Probe {
                true => self.stats.probes += 1,
                false => self.stats.timeouts += 1,
            }
            match timeout {
                Timeout::Ping => {
                    call.ping = true;
                    call.send.arm(now, &peer.rtt, call.side == Side::Client);
                }
                Timeout::Resend | Timeout::Probe => self.suspect_path(now, key),
                Timeout::Nothing => {}
            }
        }
    }

    /// Packets too large for the path are not told from a dead peer but by a small ping.
    fn suspect_path(&mut self, now: Instant, key: Key) {
        let data_max = self.data_max_before_proof(key);
        let Some(call) = self.calls.get_mut(key) else { return };
        if call.narrow.is_some() || !call.send.is_swallowed(now, data_max) {
            return;
        }
        let round_trip = self.connections.slab.get(call.connection).and_then(|c| self.peers.get(c.peer));
        let wait =
            round_trip.map_or(PING_ANSWERED_MIN, |peer| peer.rtt.smoothed() * 2).max(PING_ANSWERED_MIN);
        call.narrow = Some(NarrowPath { asked_at: now, decided_at: now + wait });
        call.ping = true;
    }

    /// The answer to that ping decides. A packet that has a number cannot be divided, so the call fails; the next one has smaller packets.
    /// Returns whether the call is over.
    fn decide_path(&mut self, now: Instant, key: Key) -> bool {
        let data_max = self.data_max_before_proof(key);
        let Some(call) = self.calls.get_mut(key) else { return false };
        let Some(narrow) = call.narrow.take_if(|narrow| now >= narrow.decided_at) else { return false };
        if call.last_heard <= narrow.asked_at || !call.send.is_swallowed(now, data_max) {
            return false;
        }
        let peer = self.connections.slab.get(call.connection).map(|connection| connection.peer);
        if let Some(peer) = peer.and_then(|peer| self.peers.get_mut(peer)) {
            peer.path.narrowed(now, self.config.packet_size_before_proof(&peer.address));
            self.stats.narrow_paths += 1;
        }
        self.expire(now, key, Expired::Dead);
        true
    }

    /// A call that ends without an ack of a large packet leaves its path unknown. A peer does not answer pings for a call whose first packet has not
    /// arrived, so that a path that swallowed it looks like a dead peer.
    fn doubt_path(&mut self, now: Instant, key: Key) {
        let data_max = self.data_max_before_proof(key);
        let Some(call) = self.calls.get(key).filter(|call| call.send.is_swallowed(now, data_max)) else {
            return;
        };
        let peer = self.connections.slab.get(call.connection).map(|connection| connection.peer);
        if let Some(peer) = peer.and_then(|peer| self.peers.get_mut(peer)) {
            peer.path.doubted(self.config.packet_size_before_proof(&peer.address));
        }
    }

    /// Bytes of data in the largest packet that is sent on an unknown path.
    fn data_max_before_proof(&self, key: Key) -> usize {
        let connection = self.calls.get(key).and_then(|call| self.connections.slab.get(call.connection));
        let peer = connection.and_then(|connection| self.peers.get(connection.peer));
        let Some((connection, peer)) = connection.zip(peer) else { return usize::MAX };
        super::data_in(connection, self.config.packet_size_before_proof(&peer.address))
    }

    /// A call exceeded one of its limits. The peer is sent an abort, in case it still receives.
    fn expire(&mut self, now: Instant, key: Key, expired: Expired) {
        let Some(call) = self.calls.get(key) else { return };
        let (connection, channel, number, side) = (call.connection, call.channel, call.number, call.side);
        let (error, code) = match expired {
            Expired::Dead => (CallError::Unreachable, code::CALL_DEAD),
            Expired::Idle | Expired::Deadline => (CallError::Timeout, code::CALL_TIMEOUT),
        };
        if side == Side::Server || call.send.was_sent() {
            self.push_abort(now, connection, channel, number, code);
        }
        self.fail_call(now, key, error, Some(code));
        if let Some(connection) = self.connection_mut(connection).filter(|_| side == Side::Client) {
            // The server may still work on the call; another channel is preferred for the next one.
            connection.channels[channel].busy = true;
            // A server with several addresses may have changed the one that it replies from.
            connection.answers_from = None;
        }
    }

    fn peer_timeout(&mut self, now: Instant, key: Key) {
        let Some(peer) = self.peers.get(key) else { return };
        if peer.connections > 0 {
            return;
        }
        let gone_at = peer.idle_since + self.config.peer_idle;
        if now < gone_at {
            self.timers.arm(Owner::Peer(key), gone_at);
            return;
        }
        self.remove_peer(key);
    }
}
