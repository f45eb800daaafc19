//! Packets received by the client of a connection.

use super::Endpoint;
use crate::Instant;
use crate::packet::{Header, PacketType};
use crate::slab::Key;
use crate::stats::DropReason;
use bytes::Bytes;

impl Endpoint {
    pub(super) fn handle_at_client(&mut self, now: Instant, key: Key, header: &Header, payload: Bytes) {
        let Some(connection) = self.connection_mut(key) else { return };
        let channel = &mut connection.channels[header.channel()];
        if header.kind == PacketType::BUSY {
            // The call number is the server's, whatever the client sent: docs/protocol/rx.md "8.4 BUSY".
            channel.busy = true;
            let call = channel.call;
            self.note_alive(now, call);
            return;
        }
        let (number, call) = (channel.number, channel.call);
        match call {
            _ if header.call != number => self.stats.drop_packet(DropReason::OldCall),
            Some(call) => self.handle_call_packet(now, call, header, payload),
            None => self.reply_for_ended(now, key, header),
        }
    }

    /// The peer is alive, though the packet advanced no call.
    fn note_alive(&mut self, now: Instant, call: Option<Key>) {
        if let Some(call) = call.and_then(|key| self.calls.get_mut(key)) {
            call.last_heard = now;
        }
    }
}
