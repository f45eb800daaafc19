//! Packets received by the client of a connection.

use super::Endpoint;
use crate::Instant;
use crate::packet::{Ack, Header, PacketType, reason};
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
        if header.kind == PacketType::ACK && (header.call != number || call.is_none()) {
            self.note_path(key, &payload);
        }
        match call {
            _ if header.call != number => self.stats.drop_packet(DropReason::OldCall),
            Some(call) => self.handle_call_packet(now, call, header, payload),
            None => self.reply_for_ended(now, key, header),
        }
    }

    /// The answer to a padded ping may come after the reply to its call.
    fn note_path(&mut self, key: Key, payload: &[u8]) {
        let ack = Ack::decode(payload).filter(|ack| ack.reason == reason::PING_RESPONSE);
        let peer = self.connections.slab.get(key).map(|connection| connection.peer);
        if let Some((ack, peer)) = ack.zip(peer.and_then(|peer| self.peers.get_mut(peer))) {
            peer.path.answered(key, ack.serial);
        }
    }

    /// The peer is alive, though the packet advanced no call.
    fn note_alive(&mut self, now: Instant, call: Option<Key>) {
        if let Some(call) = call.and_then(|key| self.calls.get_mut(key)) {
            call.last_heard = now;
        }
    }
}
