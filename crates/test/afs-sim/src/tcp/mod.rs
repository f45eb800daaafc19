//! Simulated TCP: byte streams with delays, splits, stalls, partitions and resets.
//!
//! A connection has two ends. Written data waits in an end's outbox, is sent in segments of random length as far as
//! the other end has room, arrives in order, and waits in the other end's inbox. A segment that cannot arrive (a
//! partition, a machine that is down or suspended) is retransmitted with growing pauses, until the sender's time-out.

mod config;
mod connect;
mod deliver;
mod end;
mod faults;
mod listener;
mod send;
mod stream;

pub use config::{StreamConfig, StreamFault, StreamMishap};
pub(crate) use connect::connect;
pub(crate) use end::{Connection, Side, StreamId};
pub(crate) use listener::{Listening, listen};

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use crate::node::NodeId;

/// All streams of a simulation.
pub(crate) struct Streams {
    pub(crate) connections: BTreeMap<StreamId, Connection>,
    pub(crate) listeners: BTreeMap<(NodeId, SocketAddr), Listening>,
    pub(crate) config: StreamConfig,
    pub(crate) links: BTreeMap<(NodeId, NodeId), StreamConfig>,
    /// Faults for the next connections between two nodes.
    pub(crate) faults: BTreeMap<(NodeId, NodeId), VecDeque<StreamFault>>,
    next_id: u64,
    next_port: u16,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            connections: BTreeMap::new(),
            listeners: BTreeMap::new(),
            config: StreamConfig::default(),
            links: BTreeMap::new(),
            faults: BTreeMap::new(),
            next_id: 0,
            next_port: FIRST_PORT,
        }
    }
}

impl Streams {
    fn free_id(&mut self) -> StreamId {
        self.next_id += 1;
        StreamId(self.next_id)
    }

    /// An ephemeral port. Reused after 16,384 others.
    fn free_port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
        port
    }

    pub(crate) fn config_between(&self, from: NodeId, to: NodeId) -> StreamConfig {
        self.links.get(&(from, to)).copied().unwrap_or(self.config)
    }
}

/// The first dynamic port: RFC 6335, section 6.
const FIRST_PORT: u16 = 49152;
