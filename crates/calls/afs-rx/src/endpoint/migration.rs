//! Migration of a client's connection to another address: docs/protocol/rx.md "3. Connections, ids, epochs".
//!
//! The ids in a header prove nothing, and a packet that opens under the connection's keys does not prove where its
//! client is: an eavesdropper can send a copy, which may arrive before the original. So a connection migrates only to
//! an address that has responded to a challenge with the connection's keys. Until then that address has a connection
//! of its own, a claim, which takes no calls; the claimed connection continues at its address.

use super::Endpoint;
use crate::Instant;
use crate::connection::{Connection, ServerKey};
use crate::packet::{Header, PacketType};
use crate::slab::Key;
use crate::stats::DropReason;
use bytes::Bytes;

impl Endpoint {
    /// Whether a new connection has the ids of one that may migrate.
    pub(super) fn is_claim(&self, named: &ServerKey, security_index: u8) -> bool {
        let claimed = self.connections.migratable(named.epoch, named.cid);
        let claimed = claimed.and_then(|key| self.connections.slab.get(key));
        claimed.is_some_and(|claimed| claimed.security_index == security_index)
    }

    /// The connection that handles a packet: the one it arrived for, or the one that has migrated to its address.
    /// `None` when the address is not validated yet, and the packet dropped: the client retransmits it.
    pub(super) fn resolve_claim(
        &mut self,
        now: Instant,
        key: Key,
        header: &Header,
        payload: &Bytes,
    ) -> Option<Key> {
        let connection = self.connections.slab.get(key)?;
        if !connection.claims || connection.failed.is_some() || header.kind == PacketType::RESPONSE {
            return Some(key);
        }
        if header.kind != PacketType::DATA {
            self.stats.drop_packet(DropReason::NoSuchCall);
            return None;
        }
        if !connection.is_authenticated() {
            self.stats.drop_packet(DropReason::UnvalidatedAddress);
            self.admit(now, key);
            return None;
        }
        let claimed = self.connections.migratable(connection.epoch, connection.cid);
        // Opened with the keys of both: the client that responded to the challenge may be another one, with keys of
        // its own.
        match claimed
            .filter(|claimed| self.opens(*claimed, header, payload) && self.opens(key, header, payload))
        {
            Some(claimed) => {
                self.migrate(now, claimed, key);
                return Some(claimed);
            }
            None if claimed.is_some() => self.stats.drop_packet(DropReason::NotOpened),
            // The client begins anew with its next packet.
            None => self.remove_connection(now, key),
        }
        None
    }

    /// Opens a copy of a DATA packet to verify that it is from the connection's client.
    fn opens(&mut self, key: Key, header: &Header, payload: &Bytes) -> bool {
        let Some(connection) = self.connection_mut(key) else { return false };
        let fits = connection.security_index == header.security_index && connection.failed.is_none();
        if !fits || header.call == 0 || header.seq == 0 {
            return false;
        }
        let mut context = connection.context(header.channel(), header.call, header.seq, true);
        context.checksum = header.checksum;
        connection.security.cipher().open(&context, payload.clone()).is_ok()
    }

    /// Migrates a connection to the validated address.
    fn migrate(&mut self, now: Instant, key: Key, claim: Key) {
        let Some((new, to)) = self.connections.slab.get(claim).map(|claim| (claim.peer, claim.to)) else {
            return;
        };
        self.join_peer(new);
        self.remove_connection(now, claim);
        let Some(connection) = self.connection_mut(key) else { return };
        let old = std::mem::replace(&mut connection.peer, new);
        self.leave_peer(now, old);
        self.connections.relocate(key, to);
        self.stats.moves += 1;
        self.retransmit_unacked(now, key);
    }

    /// Retransmits what was sent to the old address and not acknowledged.
    fn retransmit_unacked(&mut self, now: Instant, key: Key) {
        let calls = self.connections.slab.get(key).map(Connection::calls);
        for call in calls.into_iter().flatten().flatten() {
            if let Some(call) = self.calls.get_mut(call).filter(|call| call.send.has_unacked()) {
                call.send.resend_at = now;
            }
            self.reschedule(call);
        }
    }
}
