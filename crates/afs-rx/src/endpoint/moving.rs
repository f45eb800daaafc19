//! A client's change of address: docs/protocol/rx.md "3. Connections, ids, epochs".
//!
//! The ids in a header prove nothing, so a connection follows its client only by a DATA packet that opens under the
//! connection's keys and that was not seen before. Everything else from another address leaves the connection alone.

use super::Endpoint;
use super::servers::FIRST_SEQ_MAX;
use crate::Instant;
use crate::call::{Arrival, Phase};
use crate::ids::{Cid, Epoch};
use crate::packet::{Header, PacketType, flags};
use crate::slab::Key;
use crate::stats::Drop;
use bytes::Bytes;
use std::net::SocketAddr;

/// The origin of a packet that names a connection of another address.
pub(super) enum Elsewhere {
    /// The connection's client sends from there now.
    Moved(Key),
    /// The client's, but sent before: perhaps a recording. There is nothing to do.
    Repeated,
    /// Not the client's.
    Unknown,
}

impl Endpoint {
    pub(super) fn find_elsewhere(
        &mut self,
        now: Instant,
        from: SocketAddr,
        header: &Header,
        payload: &Bytes,
    ) -> Elsewhere {
        let found = self.connections.movable(Epoch(header.epoch), Cid::of(header.cid));
        let Some(key) = found.filter(|key| self.opens(*key, header, payload)) else {
            return Elsewhere::Unknown;
        };
        if !self.is_news(key, header) {
            self.stats.drop_packet(Drop::Duplicate);
            return Elsewhere::Repeated;
        }
        self.move_connection(now, key, from);
        Elsewhere::Moved(key)
    }

    /// Opens a copy of a DATA packet to see whether the client sent it.
    fn opens(&mut self, key: Key, header: &Header, payload: &Bytes) -> bool {
        let Some(connection) = self.connection_mut(key) else { return false };
        let fits = connection.security_index == header.security_index && connection.failed.is_none();
        if !fits || header.kind != PacketType::DATA || header.call == 0 || header.seq == 0 {
            return false;
        }
        let mut context = connection.context(header.channel(), header.call, header.seq, true);
        context.checksum = header.checksum;
        connection.security.packets_mut().open(&context, payload.clone()).is_ok()
    }

    /// A packet of the channel's next call, or one that its present call lacks.
    fn is_news(&self, key: Key, header: &Header) -> bool {
        let Some(connection) = self.connections.slab.get(key) else { return false };
        let channel = &connection.channels[header.channel()];
        if header.call != channel.number {
            return header.call > channel.number && header.seq <= FIRST_SEQ_MAX;
        }
        let call =
            channel.call.and_then(|call| self.calls.get(call)).filter(|call| call.phase != Phase::Over);
        let arrival = call.map(|call| call.receive.classify(header.seq, header.has(flags::LAST_PACKET)));
        matches!(arrival, Some(Arrival::InOrder | Arrival::FillsGap | Arrival::OutOfOrder))
    }

    fn move_connection(&mut self, now: Instant, key: Key, to: SocketAddr) {
        let Some(old) = self.connections.slab.get(key).map(|connection| connection.peer) else { return };
        let new = self.peer(now, to);
        self.join_peer(new);
        self.leave_peer(now, old);
        self.connections.relocate(key, to);
        if let Some(connection) = self.connection_mut(key) {
            connection.peer = new;
        }
        self.stats.moves += 1;
    }
}
