//! Commands of the application on connections and calls; those that move data are in `stream.rs`.

use super::Endpoint;
use crate::Instant;
use crate::call::{Limits, Phase};
use crate::connection::{Connection, ConnectionIds, Security};
use crate::error::{CallError, OpenError, code};
use crate::ids::{CallId, ConnId, Side};
use crate::packet::PacketType;
use crate::security::ClientSecurity;
use crate::slab::Key;
use core::time::Duration;
use std::net::SocketAddr;

impl Endpoint {
    /// Opens a client connection. Nothing is sent until a call is made on it.
    pub fn connect(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        service: u16,
        security: Box<dyn ClientSecurity>,
    ) -> ConnId {
        let (epoch, cid, peer_key) = (self.epoch, self.take_cid(), self.peer(now, peer));
        self.join_peer(peer_key);
        let security = Security::client(security, now);
        let named = ConnectionIds { epoch, cid, service, security, peer: peer_key, to: peer };
        let dead_time = self.config.dead_time;
        let make = |key| Connection::new(key, named, dead_time, now);
        let key = self.connections.insert_client(cid, make);
        if let Some(peer) = self.peers.get_mut(peer_key) {
            peer.clients.push(key);
        }
        ConnId(key)
    }

    /// Closes a client connection. Its calls are aborted; replies that were read and not yet acked are acked.
    pub fn close(&mut self, now: Instant, connection: ConnId) {
        let key = connection.0;
        let Some(found) = self.connection_mut(key).filter(|found| found.side() == Side::Client) else {
            return;
        };
        found.wants_channel = false;
        let channels = found.channels;
        for (index, channel) in channels.into_iter().enumerate() {
            if let Some(call) = channel.call {
                self.abort(now, CallId(call), code::USER_ABORT);
            } else if channel.final_ack_at.is_set() {
                self.push_connection_packet(now, key, PacketType::ACK_ALL, (index, channel.number), &[]);
            }
        }
        self.remove_connection(now, key);
    }

    /// Begins a call on a free channel.
    pub fn open_call(&mut self, now: Instant, connection: ConnId) -> Result<CallId, OpenError> {
        let found = self.connections.slab.get_mut(connection.0).filter(|found| found.side() == Side::Client);
        let found = found.ok_or(OpenError::Unknown)?;
        if let Some(code) = found.failed {
            return Err(OpenError::ConnectionFailed(code));
        }
        let Some(channel) = found.free_channel() else {
            found.wants_channel = true;
            return Err(OpenError::NoChannel);
        };
        let number = found.channels[channel].number.checked_add(1);
        let number = number.ok_or(OpenError::ConnectionFailed(code::PROTOCOL_ERROR))?;
        let dead = found.dead_time;
        let limits = Limits::new(dead, Duration::MAX);
        let key = self.begin_call(now, connection.0, channel, number, limits);
        self.stats.calls_opened += 1;
        Ok(CallId(key))
    }

    /// Creates a call on a channel.
    pub(super) fn begin_call(
        &mut self,
        now: Instant,
        connection_key: Key,
        channel: usize,
        number: u32,
        mut limits: Limits,
    ) -> Key {
        let mut call = self.spare_call();
        let mut side = Side::Client;
        if let Some(connection) = self.connections.slab.get_mut(connection_key) {
            side = connection.side();
            if let Some(peer) = self.peers.get(connection.peer) {
                limits.dead_with_fudge = limits.dead + peer.rtt.fudge();
                let window = peer.initial_window();
                let congestion_window = peer.initial_congestion_window();
                call.send.begin(window, congestion_window, self.config.send_window);
                call.receive.begin(self.config.receive_window(peer.packet_size_own));
                if side == Side::Client {
                    call.receive.open_window();
                }
            }
        }
        call.begin(now, side, limits);
        (call.connection, call.channel, call.number) = (connection_key, channel, number);
        let key = self.calls.insert_with(|key| {
            call.id = CallId(key);
            call
        });
        if let Some(connection) = self.connections.slab.get_mut(connection_key) {
            connection.channels[channel].begin(number, key);
        }
        key
    }

    /// Aborts a call with a code for the peer. `Event::Finished` follows.
    pub fn abort(&mut self, now: Instant, call: CallId, code: i32) {
        let Some(state) = self.calls.get(call.0) else { return };
        if state.phase != Phase::Active {
            return;
        }
        // The server knows nothing of a client call that sent no packet.
        if state.side == Side::Server || state.send.was_sent() {
            let (connection, channel, number) = (state.connection, state.channel, state.number);
            self.push_abort(now, connection, channel, number, code);
        }
        self.fail_call(now, call.0, CallError::LocalAbort(code), Some(code));
    }

    /// Releases the id. An unfinished call is aborted with -6 (RX_USER_ABORT); a finished reply is still delivered,
    /// without an event.
    pub fn release(&mut self, now: Instant, call: CallId) {
        let Some(state) = self.calls.get_mut(call.0) else { return };
        state.released = true;
        if state.phase == Phase::Over {
            self.detach(now, call.0);
            self.free(call.0);
            return;
        }
        match state.side {
            Side::Server if state.send.is_finished() => {}
            Side::Client if state.receive.is_complete() => self.complete_call(now, call.0),
            _ => self.abort(now, call, code::USER_ABORT),
        }
    }

    /// Sets the dead time of calls begun on this connection from now on. At least 6 s.
    pub fn set_dead_time(&mut self, connection: ConnId, dead_time: Duration) {
        if let Some(connection) = self.connection_mut(connection.0) {
            connection.dead_time = dead_time.max(crate::config::DEAD_TIME_MIN);
        }
    }

    /// Fails the call with `CallError::Timeout` if it is not over by then.
    pub fn set_deadline(&mut self, call: CallId, deadline: Instant) {
        if let Some(state) = self.calls.get_mut(call.0) {
            state.limits.deadline = deadline;
            self.reschedule(call.0);
        }
    }

    /// The first packet of a client's call is not sent again from then on; without it nothing of the call is. A peer that has not got it by
    /// then, or has forgotten it, as one that was restarted, never begins the call, which fails when the peer counts as dead.
    pub fn set_repeat_limit(&mut self, call: CallId, limit: Instant) {
        if let Some(state) = self.calls.get_mut(call.0) {
            state.limits.repeat_until = limit;
            self.reschedule(call.0);
        }
    }

    /// Limits how long a call waits for the peer's data or for room to send before it fails with
    /// `CallError::Timeout`. Unlimited for client calls at first; `Config::idle_time` for server calls.
    pub fn set_idle_time(&mut self, call: CallId, idle_time: Duration) {
        if let Some(state) = self.calls.get_mut(call.0) {
            state.limits.idle = idle_time;
            self.reschedule(call.0);
        }
    }
}
