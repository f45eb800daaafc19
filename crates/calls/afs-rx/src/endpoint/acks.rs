//! Handlers of ACK and ACKALL packets of a live call: docs/protocol/rx.md "Accepting an ACK (order matters)".

use super::Endpoint;
use crate::Instant;
use crate::call::Freshness;
use crate::event::Event;
use crate::ids::Side;
use crate::packet::{Ack, Header, flags, reason};
use crate::slab::Key;
use crate::stats::DropReason;

impl Endpoint {
    pub(super) fn handle_ack(&mut self, now: Instant, key: Key, header: &Header, payload: &[u8]) {
        let Some(ack) = Ack::decode(payload) else {
            self.stats.drop_packet(DropReason::ShortPayload);
            return;
        };
        let Some(call) = self.calls.get_mut(key) else { return };
        if header.has(flags::REQUEST_ACK) {
            call.ack.demand(reason::PING_RESPONSE, header.serial);
        }
        match self.take_ack(now, key, header, &ack) {
            Ok(()) => self.after_ack(now, key),
            Err(drop) => self.stats.drop_packet(drop),
        }
        self.reschedule(key);
    }

    fn take_ack(&mut self, now: Instant, key: Key, header: &Header, ack: &Ack<'_>) -> Result<(), DropReason> {
        let call = self.calls.get_mut(key).ok_or(DropReason::NoSuchCall)?;
        match call.send.freshness(ack) {
            // Once a reply has begun, acks of the request show only that the server lives.
            _ if call.send.is_closed() => {}
            Freshness::Fresh => {}
            Freshness::Stale => return Err(DropReason::StaleAck),
            Freshness::BeyondSent => return Err(DropReason::AckBeyondSent),
        }
        call.last_heard = now;
        let connection =
            self.connections.slab.get_mut(call.connection).ok_or(DropReason::NoSuchConnection)?;
        let peer = self.peers.get_mut(connection.peer).ok_or(DropReason::NoSuchConnection)?;
        peer.apply_trailer(&ack.trailer);
        if ack.reason == reason::PING_RESPONSE {
            peer.path.answered(call.connection, ack.serial);
        }
        if call.send.is_closed() {
            return Ok(());
        }
        let result = call.send.handle_ack(now, ack, header.serial, &mut peer.rtt);
        self.stats.losses += u64::from(result.losses);
        self.stats.rtt_samples += u64::from(result.round_trip.is_some());
        if result.newly_acked > 0 {
            call.last_progress = now;
        }
        call.send.arm(now, &peer.rtt, call.side == Side::Client);
        let waits = connection.validation_ping_at.is_set();
        let trusted = peer.is_validated || !connection.reachability_check;
        let connection = call.connection;
        // Either shows that packets to this address arrive there. The numbers of DATA can be guessed.
        if result.newly_acked > 0 && trusted
            || ack.reason == reason::PING_RESPONSE && self.is_ping_of(connection, ack.serial)
        {
            self.validate_address(now, connection);
        }
        if waits {
            self.admit(now, connection);
        }
        Ok(())
    }

    /// Events and timers after an ack has made room.
    fn after_ack(&mut self, now: Instant, key: Key) {
        let Some(call) = self.calls.get(key) else { return };
        if call.is_delivered() {
            self.complete_call(now, key);
            return;
        }
        self.notify_writer(key);
    }

    /// Wakes a blocked writer once half of the send limit is free.
    pub(super) fn notify_writer(&mut self, key: Key) {
        let limit = match self.calls.get(key) {
            Some(call) if call.write_blocked => self.send_limit(key),
            _ => return,
        };
        let Some(call) = self.calls.get_mut(key) else { return };
        if call.send.waiting() <= limit / 2 {
            call.write_blocked = false;
            self.events.push_back(Event::Writable(call.id));
        }
    }

    /// The peer has received everything that was sent.
    pub(super) fn handle_ack_all(&mut self, now: Instant, key: Key) {
        let Some(call) = self.calls.get_mut(key) else { return };
        call.last_heard = now;
        if !call.send.is_finished() {
            // Data that was not written yet cannot be acknowledged.
            self.stats.drop_packet(DropReason::WrongPhase);
            return;
        }
        call.last_progress = now;
        call.send.close();
        self.after_ack(now, key);
        self.reschedule(key);
    }
}
