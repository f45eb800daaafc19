//! Handler of DATA packets of a live call.

use super::Endpoint;
use crate::Instant;
use crate::call::{Arrival, Call, KEPT_COST, Phase, Received, SOFT_DELAY};
use crate::event::Event;
use crate::ids::Side;
use crate::packet::{Header, flags, reason};
use crate::slab::Key;
use crate::stats::DropReason;
use bytes::Bytes;

/// Divisor: the share of the memory for received data that waiting calls may have together.
const WAITING_SHARE: usize = 4;

impl Endpoint {
    pub(super) fn handle_data(&mut self, now: Instant, key: Key, header: &Header, payload: Bytes) {
        let Some(call) = self.calls.get_mut(key) else { return };
        if header.seq == 0 {
            self.stats.drop_packet(DropReason::SequenceZero);
            return;
        }
        call.last_heard = now;
        let is_last = header.has(flags::LAST_PACKET);
        let arrival = call.receive.classify(header.seq, is_last);
        let kept = matches!(arrival, Arrival::InOrder | Arrival::FillsGap | Arrival::OutOfOrder);
        let cost = payload.len() + KEPT_COST;
        if kept && !self.has_room(key, cost, arrival) && !self.make_room_for_packet(now, key, cost, arrival) {
            self.stats.drop_packet(DropReason::BufferFull);
            return;
        }
        if kept {
            self.keep_data(now, key, header, payload, arrival);
        }
        self.owe_ack(now, key, header, arrival);
        self.reschedule(key);
    }

    /// Whether there is memory for a packet. A call that has nothing else to read may always have its next packet, so
    /// that full memory slows calls but blocks none.
    ///
    /// A call that still waits for admission may have a forged source. All of these have a share of the memory, which
    /// no other call takes, and a packet that finds no room there is retransmitted after the call is admitted.
    pub(super) fn has_room(&self, key: Key, cost: usize, arrival: Arrival) -> bool {
        let Some(call) = self.calls.get(key) else { return false };
        let total = self.config.receive_buffer_total;
        let for_waiting = total / WAITING_SHARE;
        if call.phase == Phase::Waiting {
            return self.waiting_bytes + cost <= for_waiting;
        }
        let connection = self.connections.slab.get(call.connection);
        let Some(peer) = connection.and_then(|connection| self.peers.get(connection.peer)) else {
            return false;
        };
        let needed = arrival != Arrival::OutOfOrder && !call.receive.is_readable();
        let own = call.receive.held() + cost <= call.receive.held_max(peer.packet_size_own);
        let of_others = self.stats.buffered_bytes - self.waiting_bytes;
        needed || own && of_others + cost <= total - for_waiting
    }

    fn keep_data(&mut self, now: Instant, key: Key, header: &Header, payload: Bytes, arrival: Arrival) {
        let Some(call) = self.calls.get_mut(key) else { return };
        let len = payload.len();
        // A packet that may be held for long is copied, so that it does not hold a larger buffer.
        let is_held_long = call.phase == Phase::Waiting || arrival == Arrival::OutOfOrder;
        let payload = if is_held_long { Bytes::copy_from_slice(&payload) } else { payload };
        let packet = Received { payload, checksum: header.checksum };
        self.stats.bytes_received += len as u64;
        self.stats.buffered_bytes += packet.cost();
        if call.phase == Phase::Waiting {
            self.waiting_bytes += packet.cost();
        }
        let connection = self.connections.slab.get(call.connection);
        if let Some(peer) = connection.and_then(|connection| self.peers.get_mut(connection.peer)) {
            peer.bytes_received += len as u64;
            if call.side == Side::Client && !call.receive.has_begun() {
                // The first DATA of the reply acknowledges the whole request.
                if let Some(turnaround) = call.send.turnaround(now) {
                    peer.rtt.sample_turnaround(turnaround);
                }
                if let Some(bound) = call.send.round_trip_bound(now) {
                    peer.rtt.sample_bound(bound);
                }
                call.request_was_acked = !call.send.has_unacked();
                call.send.close();
                // The ids of a connection opened here are known to its peer only.
                self.amplification.validate(peer, now + self.config.reachable_for);
            }
        }
        call.receive.insert(header.seq, header.has(flags::LAST_PACKET), packet);
        if call.phase == Phase::Active && arrival != Arrival::OutOfOrder {
            call.receive.open_window();
        }
        call.last_progress = now;
        if std::mem::take(&mut call.write_blocked) && call.side == Side::Client {
            // Further writes are discarded, but the writer must learn that it can continue.
            self.events.push_back(Event::Writable(call.id));
        }
        notify_reader(call, &mut self.events);
    }

    fn owe_ack(&mut self, now: Instant, key: Key, header: &Header, arrival: Arrival) {
        let Some(call) = self.calls.get_mut(key) else { return };
        let serial = header.serial;
        let requested = header.has(flags::REQUEST_ACK);
        let delay = match call.side == Side::Client && call.receive.is_complete() {
            true => call.final_ack_delay(),
            false => SOFT_DELAY,
        };
        match arrival {
            Arrival::InOrder | Arrival::FillsGap if requested => call.ack.demand(reason::REQUESTED, serial),
            Arrival::InOrder => call.ack.arrived(now, serial, delay),
            Arrival::FillsGap => call.ack.demand(reason::IDLE, serial),
            Arrival::OutOfOrder => call.ack.demand(reason::OUT_OF_SEQUENCE, serial),
            Arrival::Duplicate => {
                call.ack.demand(reason::DUPLICATE, serial);
                self.stats.drop_packet(DropReason::Duplicate);
            }
            Arrival::ExceedsWindow => {
                call.ack.demand(reason::EXCEEDS_WINDOW, serial);
                self.stats.drop_packet(DropReason::ExceedsWindow);
            }
            Arrival::PastEnd => self.stats.drop_packet(DropReason::PastEnd),
            Arrival::Closed => {
                if requested {
                    call.ack.demand(reason::REQUESTED, serial);
                }
                self.stats.drop_packet(DropReason::RequestAfterReply);
            }
        }
    }
}

/// Queues events for a call whose receiving side has grown.
pub(super) fn notify_reader(call: &mut Call, events: &mut std::collections::VecDeque<Event>) {
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
