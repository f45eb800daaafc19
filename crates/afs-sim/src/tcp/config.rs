//! How streams behave, and the faults that a test asks for.

use std::time::Duration;

use crate::node::NodeId;
use crate::world::World;

/// How streams carry bytes from one node to another. Latency, loss (a delay of a retransmission) and cuts are those of the
/// [`LinkConfig`](crate::LinkConfig).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamConfig {
    /// Longest segment, in bytes; each has a random length up to it. Default 64 KiB, as with segmentation offload.
    pub segment_max: usize,
    /// Bytes that wait at the sender before its writes do. Default 256 KiB.
    pub send_buffer: usize,
    /// Bytes that are under way or wait at the receiver. Default 256 KiB.
    pub receive_buffer: usize,
    /// Bandwidth of one stream. Default 125,000,000, a gigabit link.
    pub bytes_per_second: u64,
    /// Segments that come late by up to `stall_max`, per million. Default 0.
    pub stall_per_million: u32,
    /// Longest stall. Default 5 s.
    pub stall_max: Duration,
    /// Segments in which the connection is reset, at a random byte, per million. Default 0.
    pub reset_per_million: u32,
    /// Segments in which the connection falls silent for ever, at a random byte, per million. Default 0.
    pub silence_per_million: u32,
}

impl Default for StreamConfig {
    fn default() -> Self {
        Self {
            segment_max: 64 << 10,
            send_buffer: 256 << 10,
            receive_buffer: 256 << 10,
            bytes_per_second: 125_000_000,
            stall_per_million: 0,
            stall_max: Duration::from_secs(5),
            reset_per_million: 0,
            silence_per_million: 0,
        }
    }
}

/// A fault at an exact byte of one direction of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamFault {
    /// Bytes of that direction that arrive before it. 0: the fault comes as soon as the connection stands.
    pub after: u64,
    /// What happens then.
    pub mishap: StreamMishap,
}

/// What can happen to a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamMishap {
    /// Both ends see a reset. The receiver may lose what it has not read.
    Reset,
    /// Nothing arrives any more in either direction, nor does anyone hear of it.
    Silence,
    /// The rest comes later by this time.
    Stall(Duration),
}

impl World {
    /// How streams behave between nodes that have no settings of their own.
    pub fn set_streams(&self, config: StreamConfig) {
        self.with(|state| state.net.streams.config = config);
    }

    /// How streams carry bytes from one node to another; the way back has settings of its own.
    pub fn set_streams_between(&self, from: NodeId, to: NodeId, config: StreamConfig) {
        self.with(|state| state.net.streams.links.insert((from, to), config));
    }

    /// A fault for the bytes from one node to another in the next connection between them that has none, whichever
    /// opens it. Several faults go to as many connections, in order.
    pub fn break_stream(&self, from: NodeId, to: NodeId, fault: StreamFault) {
        self.with(|state| state.net.streams.faults.entry((from, to)).or_default().push_back(fault));
    }

    /// Connections of which at least one end is in use, or has something under way.
    #[must_use]
    pub fn stream_count(&self) -> usize {
        self.with(|state| state.net.streams.connections.len())
    }
}
