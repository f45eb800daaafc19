//! Demultiplexer: from a datagram to its packets, their connection and call.

use super::Endpoint;
use crate::Instant;
use crate::config::PACKET_SIZE_MAX;
use crate::connection::{ConnectionIds, Security, ServerKey};
use crate::error::{CallError, code};
use crate::ids::{Cid, Epoch, Side};
use crate::packet::{HEADER_LEN, Header, PacketType, Packets, word};
use crate::slab::Key;
use crate::stats::DropReason;
use bytes::Bytes;
use std::net::SocketAddr;

impl Endpoint {
    /// Handles a received datagram.
    ///
    /// Payloads are kept as slices of `data` until they are read: it should be an allocation of its own and of its
    /// size, or memory is held that is not counted.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, data: Bytes) {
        let whole = data.len();
        let Some(mut packets) = Packets::new(data) else {
            self.stats.drop_packet(DropReason::ShortHeader);
            return;
        };
        for (header, mut payload) in packets.by_ref() {
            if payload.len() + HEADER_LEN > PACKET_SIZE_MAX {
                self.stats.drop_packet(DropReason::TooLong);
                continue;
            }
            if payload.len() + HEADER_LEN < whole {
                // Copied, so that one packet of a jumbogram does not hold the others.
                payload = Bytes::copy_from_slice(&payload);
            }
            self.handle_packet(now, from, &header, payload);
        }
        if packets.is_broken() {
            self.stats.drop_packet(DropReason::BrokenJumbogram);
        }
    }

    fn handle_packet(&mut self, now: Instant, from: SocketAddr, header: &Header, payload: Bytes) {
        if let Some(index) = header.kind.counter() {
            self.stats.packets_read[index] += 1;
        }
        if matches!(header.kind, PacketType::DEBUG | PacketType::VERSION) {
            self.reply_to_query(now, from, header, &payload);
            return;
        }
        let len = HEADER_LEN + payload.len();
        let Some(key) = self.find_connection(now, from, header, len) else { return };
        self.credit(from, len);
        let Some(key) = self.resolve_claim(now, key, header, &payload) else { return };
        let Some(connection) = self.connection_mut(key) else { return };
        if connection.security_index != header.security_index {
            self.stats.drop_packet(DropReason::WrongSecurityIndex);
            return;
        }
        connection.last_active = now;
        let (failed, side) = (connection.failed, connection.side());
        match failed {
            Some(code) => self.reply_for_failed(now, key, header, code),
            None if header.call == 0 => self.handle_connection_packet(now, key, header, &payload),
            None if side == Side::Client => self.handle_at_client(now, key, header, payload),
            None => self.handle_at_server(now, key, header, payload),
        }
    }

    /// The connection of a packet of `len` bytes.
    fn find_connection(
        &mut self,
        now: Instant,
        from: SocketAddr,
        header: &Header,
        len: usize,
    ) -> Option<Key> {
        let (epoch, cid) = (Epoch(header.epoch), Cid::of(header.cid));
        if !header.from_client() {
            return self.find_client_connection(from, epoch, cid);
        }
        let found = self.connections.server(&ServerKey { epoch, cid, from });
        found.or_else(|| self.new_server_connection(now, from, header, len))
    }

    fn find_client_connection(&mut self, from: SocketAddr, epoch: Epoch, cid: Cid) -> Option<Key> {
        let Some(key) = self.connections.client(cid).filter(|_| epoch == self.epoch) else {
            self.stats.drop_packet(DropReason::NoSuchConnection);
            return None;
        };
        if !self.connection_mut(key)?.accepts_from(from) {
            self.stats.drop_packet(DropReason::WrongAddress);
            return None;
        }
        Some(key)
    }

    /// docs/protocol/rx.md "3. Connections, ids, epochs": the first packet naming an unknown connection creates it.
    /// Only DATA does here; no other type needs it.
    fn new_server_connection(
        &mut self,
        now: Instant,
        from: SocketAddr,
        header: &Header,
        len: usize,
    ) -> Option<Key> {
        let Some((session, options)) = self.services.accept(header.service, header.security_index) else {
            self.stats.drop_packet(DropReason::NoSuchService);
            // Callers of a server that is starting must not conclude that it lacks the service.
            if !(self.config.silent_until_offering && self.services.is_empty()) {
                self.push_raw_abort(from, header, len, code::INVALID_OPERATION);
            }
            return None;
        };
        if header.kind != PacketType::DATA {
            self.stats.drop_packet(DropReason::NoSuchConnection);
            return None;
        }
        if !self.make_room_for_connection(now) {
            self.stats.drop_packet(DropReason::TooManyConnections);
            return None;
        }
        let (epoch, cid, peer) = (Epoch(header.epoch), Cid::of(header.cid), self.peer(now, from));
        self.join_peer(peer);
        let security = Security::server(session, now);
        let named = ConnectionIds { epoch, cid, service: header.service, security, peer, to: from };
        let dead_time = self.config.dead_time;
        let make = |key| crate::connection::Connection::new(key, named, dead_time, now);
        let named = ServerKey { epoch, cid, from };
        let claims = self.is_claim(&named, header.security_index);
        let key = self.connections.insert_server(named, make);
        if let Some(connection) = self.connection_mut(key) {
            connection.reachability_check = options.reachability_check;
            connection.claims = claims;
        }
        self.count_connection(key);
        self.arm_idle_timer(now, key);
        Some(key)
    }

    /// A failed connection answers every packet with its abort, except an abort.
    fn reply_for_failed(&mut self, now: Instant, key: Key, header: &Header, code: i32) {
        self.stats.drop_packet(DropReason::ConnectionFailed);
        let waits = self.connections.slab.get(key).is_some_and(|connection| connection.abort_at.is_set());
        if header.kind != PacketType::ABORT && !waits {
            self.push_connection_abort(now, key, code);
        }
    }

    /// Packets for the connection as a whole.
    fn handle_connection_packet(&mut self, now: Instant, key: Key, header: &Header, payload: &[u8]) {
        match header.kind {
            PacketType::ABORT => match abort_code(payload) {
                Some(code) => self.handle_connection_abort(now, key, code),
                None => self.stats.drop_packet(DropReason::ShortPayload),
            },
            PacketType::CHALLENGE => self.handle_challenge(now, key, payload),
            PacketType::RESPONSE => self.handle_response(now, key, header, payload),
            kind if kind.is_reserved() => self.stats.drop_packet(DropReason::UnknownType),
            // The packet is not authenticated, so it must not end the connection.
            _ => self.stats.drop_packet(DropReason::CallNumberZero),
        }
    }

    /// The peer has given up the connection. A client then opens another. A server ends the calls in progress and
    /// keeps the connection, since an ABORT is not authenticated.
    fn handle_connection_abort(&mut self, now: Instant, key: Key, code: i32) {
        let Some(connection) = self.connections.slab.get(key) else { return };
        if connection.side() == Side::Client {
            self.fail_connection(now, key, code, true);
            return;
        }
        for call in connection.calls().into_iter().flatten() {
            self.fail_call(now, call, CallError::ConnectionAborted(code), None);
        }
    }

    /// Handles a packet of a live call, on either side.
    pub(super) fn handle_call_packet(&mut self, now: Instant, key: Key, header: &Header, payload: Bytes) {
        match header.kind {
            PacketType::DATA => self.handle_data(now, key, header, payload),
            PacketType::ACK => self.handle_ack(now, key, header, &payload),
            PacketType::ACK_ALL => self.handle_ack_all(now, key),
            PacketType::ABORT => match abort_code(&payload) {
                Some(code) => self.fail_call(now, key, CallError::RemoteAbort(code), None),
                None => self.stats.drop_packet(DropReason::ShortPayload),
            },
            PacketType::BUSY | PacketType::CHALLENGE | PacketType::RESPONSE => {
                self.stats.drop_packet(DropReason::WrongPhase);
            }
            _ => {
                self.stats.drop_packet(DropReason::UnknownType);
                self.abort_for_protocol(now, key);
            }
        }
    }

    /// Aborts a call because the peer violated the protocol.
    fn abort_for_protocol(&mut self, now: Instant, key: Key) {
        let Some(call) = self.calls.get(key) else { return };
        let (connection, channel, number) = (call.connection, call.channel, call.number);
        self.push_abort(now, connection, channel, number, code::PROTOCOL_ERROR);
        let error = CallError::LocalAbort(code::PROTOCOL_ERROR);
        self.fail_call(now, key, error, Some(code::PROTOCOL_ERROR));
    }
}

/// The code of an ABORT. Zero would mean success, so it is read as a protocol error.
fn abort_code(payload: &[u8]) -> Option<i32> {
    match word(payload, 0)? as i32 {
        0 => Some(code::PROTOCOL_ERROR),
        code => Some(code),
    }
}
