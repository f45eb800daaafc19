//! Getters: properties of connections and calls, and counters.

use super::Endpoint;
use crate::ids::{CallId, Cid, ConnId, Epoch, Side};
use crate::security::Identity;
use crate::stats::{Holdings, Stats};
use core::time::Duration;
use std::net::SocketAddr;

/// Properties of a connection.
#[derive(Clone)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The peer's address, where packets are sent.
    pub peer: SocketAddr,
    /// The client's epoch.
    pub epoch: Epoch,
    /// The connection id.
    pub cid: Cid,
    /// The service.
    pub service: u16,
    /// The security index.
    pub security_index: u8,
    /// This endpoint's side.
    pub side: Side,
    /// The client's identity, when the class has authenticated it.
    pub identity: Option<Identity>,
}

/// Properties of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CallInfo {
    /// Its connection.
    pub connection: ConnId,
    /// The peer's address.
    pub peer: SocketAddr,
    /// The client's epoch.
    pub epoch: Epoch,
    /// The connection id.
    pub cid: Cid,
    /// The channel, 0 to 3.
    pub channel: usize,
    /// The call number on that channel.
    pub number: u32,
    /// The service.
    pub service: u16,
    /// The security index.
    pub security_index: u8,
    /// This endpoint's side.
    pub side: Side,
    /// Everything that the peer sends in this call has arrived.
    pub is_request_done: bool,
}

impl Endpoint {
    /// Properties of a connection; `None` once it is removed.
    pub fn connection(&self, connection: ConnId) -> Option<ConnectionInfo> {
        let connection = self.connections.slab.get(connection.0)?;
        Some(ConnectionInfo {
            peer: connection.to,
            epoch: connection.epoch,
            cid: connection.cid,
            service: connection.service,
            security_index: connection.security_index,
            side: connection.side(),
            identity: connection.identity(),
        })
    }

    /// Properties of a call; `None` once it was released or its connection is removed.
    pub fn call(&self, call: CallId) -> Option<CallInfo> {
        let call = self.calls.get(call.0)?;
        let connection = self.connections.slab.get(call.connection)?;
        Some(CallInfo {
            connection: connection.id,
            peer: connection.to,
            epoch: connection.epoch,
            cid: connection.cid,
            channel: call.channel,
            number: call.number,
            service: connection.service,
            security_index: connection.security_index,
            side: call.side,
            is_request_done: call.receive.is_complete(),
        })
    }

    /// The epoch of the client connections opened here.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The smoothed round trip to a peer; `None` if it was never measured, or not since the peer was removed.
    pub fn round_trip(&self, peer: SocketAddr) -> Option<Duration> {
        let peer = self.peers_by_address.get(&peer).and_then(|key| self.peers.get(*key))?;
        peer.rtt.measured()
    }

    /// Largest packet, in bytes of UDP's payload, that is sent to a peer whose path has not been shown to carry larger ones; `None` where both sides'
    /// largest arrive, and for a peer that is not known. What a call does not show is asked if [`Config::asks_paths`](crate::Config::asks_paths).
    pub fn narrow_path(&self, peer: SocketAddr) -> Option<usize> {
        self.peers_by_address.get(&peer).and_then(|key| self.peers.get(*key))?.narrow_path()
    }

    /// Something else than calls has lost its way to a peer: its path is asked again before large packets are sent.
    pub fn doubt_path_to(&mut self, peer: SocketAddr) {
        let size = self.config.packet_size_before_proof(&peer);
        if let Some(peer) = self.peers_by_address.get(&peer).and_then(|key| self.peers.get_mut(*key)) {
            peer.path.doubted(size);
        }
    }

    /// Numbers of objects held at the moment.
    pub fn holdings(&self) -> Holdings {
        Holdings {
            calls: self.calls.len(),
            client_connections: self.connections.client_count(),
            server_connections: self.connections.server_count(),
            peers: self.peers.len(),
            timers: self.timers.len(),
            control_packets: self.control.len(),
            events: self.events.len(),
            buffered_bytes: self.stats.buffered_bytes,
        }
    }
}
