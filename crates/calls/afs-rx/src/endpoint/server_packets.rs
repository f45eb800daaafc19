//! Packets received by the server of a connection: docs/protocol/rx.md "4. Call life cycle".

use super::Endpoint;
use crate::Instant;
use crate::call::{Limits, Phase};
use crate::error::CallError;
use crate::packet::{Header, PacketType};
use crate::slab::Key;
use crate::stats::DropReason;
use bytes::Bytes;

/// A new call whose first packet received is beyond this is a remainder from before a restart.
const FIRST_SEQ_MAX: u32 = 32;

impl Endpoint {
    pub(super) fn handle_at_server(&mut self, now: Instant, key: Key, header: &Header, payload: Bytes) {
        let Some(connection) = self.connections.slab.get(key) else { return };
        let channel = connection.channels[header.channel()];
        if header.call < channel.number {
            self.stats.drop_packet(DropReason::OldCall);
            return;
        }
        if header.call > channel.number {
            self.handle_next_call(now, key, channel.call, header, payload);
            return;
        }
        let Some(call) = channel.call else { return self.reply_for_ended(now, key, header) };
        match self.calls.get(call).map(|call| (call.phase, call.abort_code)) {
            Some((Phase::Over, code)) => self.reply_for_over(now, key, header, code),
            _ => self.handle_call_packet(now, call, header, payload),
        }
    }

    /// A packet for a call that failed and that the application has not released.
    fn reply_for_over(&mut self, now: Instant, key: Key, header: &Header, code: Option<i32>) {
        self.stats.drop_packet(DropReason::CallFailed);
        if let Some(code) = code.filter(|_| header.kind != PacketType::ABORT) {
            self.push_abort(now, key, header.channel(), header.call, code);
        }
    }

    /// A packet with a call number above the channel's.
    fn handle_next_call(
        &mut self,
        now: Instant,
        key: Key,
        current: Option<Key>,
        header: &Header,
        payload: Bytes,
    ) {
        if header.kind != PacketType::DATA {
            self.stats.drop_packet(DropReason::NoSuchCall);
            return;
        }
        if header.seq == 0 || header.seq > FIRST_SEQ_MAX {
            self.stats.drop_packet(DropReason::NewCallTooFar);
            return;
        }
        if let Some(current) = current
            && !self.end_current_call(now, key, current, header.channel())
        {
            return;
        }
        if !self.make_room_for_call(now) {
            self.stats.drop_packet(DropReason::TooManyCalls);
            let code = self.config.busy_code;
            self.push_abort(now, key, header.channel(), header.call, code);
            return;
        }
        let call = self.accept_call(now, key, header);
        // Before the data is stored, so that it counts as that of a waiting call only if the call has to wait.
        self.admit(now, key);
        self.handle_call_packet(now, call, header, payload);
    }

    /// Ends the channel's current call, since the client has begun another. False when its application still works on
    /// it: the client then gets BUSY.
    fn end_current_call(&mut self, now: Instant, key: Key, current: Key, channel: usize) -> bool {
        let Some(call) = self.calls.get(current) else { return true };
        match call.phase {
            Phase::Waiting => self.fail_call(now, current, CallError::Superseded, None),
            // The new call acknowledges the whole reply of the old one.
            Phase::Active if call.send.is_finished() => {
                if let (Some(bound), Some(connection)) =
                    (call.send.round_trip_bound(now), self.connections.slab.get(key))
                    && let Some(peer) = self.peers.get_mut(connection.peer)
                {
                    peer.rtt.sample_bound(bound);
                }
                self.complete_call(now, current);
            }
            Phase::Active | Phase::Over => {
                let number = call.number.wrapping_add(1);
                self.fail_call(now, current, CallError::Superseded, None);
                self.push_connection_packet(now, key, PacketType::BUSY, (channel, number), &[]);
                return self.connections.slab.get(key).is_none_or(|c| c.channels[channel].call.is_none());
            }
        }
        true
    }

    fn accept_call(&mut self, now: Instant, key: Key, header: &Header) -> Key {
        let dead = self.connections.slab.get(key).map_or(self.config.dead_time, |c| c.dead_time);
        let idle = self.config.idle_time.max(dead);
        let limits = Limits::new(dead, idle);
        let call = self.begin_call(now, key, header.channel(), header.call, limits);
        self.count_waiting_call(call);
        if let Some(connection) = self.connection_mut(key) {
            // A ping is about a call; those before this one may have ended at the client.
            connection.validation_ping_at = Instant::FAR_FUTURE;
        }
        call
    }
}
