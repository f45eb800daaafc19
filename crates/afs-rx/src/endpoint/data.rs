//! DATA for a live call.

use super::Endpoint;
use crate::call::{Arrival, Call, Phase, Received, ack_delay};
use crate::error::{CallError, code};
use crate::event::Event;
use crate::ids::Side;
use crate::instant::Instant;
use crate::packet::{Header, flags, reason};
use crate::slab::Key;
use crate::stats::Drop;
use bytes::Bytes;

/// docs/protocol/rx.md "10. What the server does with a new call": packets buffered for a waiting call.
const WAITING_PACKETS_MAX: u32 = 32;

impl Endpoint {
    pub(super) fn handle_data(&mut self, now: Instant, key: Key, header: &Header, payload: Bytes) {
        let Some(call) = self.calls.get_mut(key) else { return };
        if header.seq == 0 {
            self.stats.drop_packet(Drop::SequenceZero);
            return;
        }
        call.last_heard = now;
        let is_last = header.has(flags::LAST_PACKET);
        let arrival = call.receive.classify(header.seq, is_last);
        let kept = matches!(arrival, Arrival::InOrder | Arrival::FillsGap | Arrival::OutOfOrder);
        if kept && !self.has_room(key, header.seq, payload.len(), arrival) {
            self.stats.drop_packet(Drop::BufferFull);
            return;
        }
        if kept {
            self.keep_data(now, key, header, payload);
        }
        self.owe_ack(now, key, header, arrival);
        self.touch(key);
    }

    /// Memory for a payload. A call that has nothing else to read may always have its next packet, so that
    /// full memory slows calls but stops none.
    ///
    /// A call that still waits to be admitted may be anyone's, so it holds no more than old peers send.
    fn has_room(&self, key: Key, seq: u32, len: usize, arrival: Arrival) -> bool {
        let Some(call) = self.calls.get(key) else { return false };
        if call.phase == Phase::Waiting && seq > WAITING_PACKETS_MAX {
            return false;
        }
        let needed = arrival != Arrival::OutOfOrder && !call.receive.is_readable();
        needed || self.stats.buffered_bytes + len <= self.config.receive_buffer_total
    }

    fn keep_data(&mut self, now: Instant, key: Key, header: &Header, payload: Bytes) {
        let Some(call) = self.calls.get_mut(key) else { return };
        let len = payload.len();
        self.stats.bytes_received += len as u64;
        self.stats.buffered_bytes += len;
        let connection = self.connections.slab.get(call.connection);
        if let Some(peer) = connection.and_then(|connection| self.peers.get_mut(connection.peer)) {
            peer.bytes_received += len as u64;
            if call.side == Side::Client && !call.receive.has_begun() {
                // The first DATA of the reply acknowledges the whole request.
                if let Some(bound) = call.send.round_trip_bound(now) {
                    peer.rtt.sample_bound(bound);
                }
                call.send.close();
            }
        }
        let packet = Received { payload, checksum: header.checksum };
        call.receive.insert(header.seq, header.has(flags::LAST_PACKET), packet);
        call.last_progress = now;
        if std::mem::take(&mut call.write_blocked) && call.side == Side::Client {
            // Further writes go nowhere, but the writer must learn that it can go on.
            self.events.push_back(Event::Writable(call.id));
        }
        tell_reader(call, &mut self.events);
    }

    fn owe_ack(&mut self, now: Instant, key: Key, header: &Header, arrival: Arrival) {
        let Some(call) = self.calls.get_mut(key) else { return };
        let serial = header.serial;
        let requested = header.has(flags::REQUEST_ACK);
        let completes_reply = call.side == Side::Client && call.receive.is_complete();
        match arrival {
            Arrival::InOrder | Arrival::FillsGap if requested => call.ack.demand(reason::REQUESTED, serial),
            Arrival::InOrder => call.ack.arrived(now, serial, ack_delay(completes_reply)),
            Arrival::FillsGap => call.ack.demand(reason::IDLE, serial),
            Arrival::OutOfOrder => call.ack.demand(reason::OUT_OF_SEQUENCE, serial),
            Arrival::Duplicate => {
                call.ack.demand(reason::DUPLICATE, serial);
                self.stats.drop_packet(Drop::Duplicate);
            }
            Arrival::ExceedsWindow => {
                call.ack.demand(reason::EXCEEDS_WINDOW, serial);
                self.stats.drop_packet(Drop::ExceedsWindow);
            }
            Arrival::PastEnd => self.stats.drop_packet(Drop::PastEnd),
            Arrival::Closed => {
                if requested {
                    call.ack.demand(reason::REQUESTED, serial);
                }
                self.stats.drop_packet(Drop::RequestAfterReply);
            }
        }
    }

    /// Unwraps a packet for the application. A failure ends the whole connection.
    pub(super) fn open_packet(
        &mut self,
        now: Instant,
        key: Key,
        seq: u32,
        packet: Received,
    ) -> Result<Bytes, CallError> {
        let call = self.calls.get(key).ok_or(CallError::Unknown)?;
        let connection_key = call.connection;
        let connection = self.connections.slab.get_mut(connection_key).ok_or(CallError::Unknown)?;
        if !connection.security.packets().protects() {
            return Ok(packet.payload);
        }
        let from_client = call.side == Side::Server;
        let mut context = connection.context(call.channel, call.number, seq, from_client);
        context.checksum = packet.checksum;
        match connection.security.packets_mut().open(&context, packet.payload) {
            Ok(data) => Ok(data),
            Err(failure) => {
                let code = if failure.code == 0 { code::PROTOCOL_ERROR } else { failure.code };
                self.fail_connection(now, connection_key, code, false);
                self.push_connection_abort(now, connection_key, code);
                Err(CallError::ConnectionFailed(code))
            }
        }
    }
}

/// Events for a call whose receiving side has grown.
pub(super) fn tell_reader(call: &mut Call, events: &mut std::collections::VecDeque<Event>) {
    if call.phase != Phase::Active {
        return;
    }
    if call.read_blocked && call.receive.is_readable() {
        call.read_blocked = false;
        events.push_back(Event::Readable(call.id));
    }
    if call.side == Side::Server && !call.request_done_told && call.receive.is_complete() {
        call.request_done_told = true;
        events.push_back(Event::RequestDone(call.id));
    }
}
