//! Configuration of simulated streams, and their faults.

use std::time::Duration;

use crate::node::NodeId;
use crate::world::World;

/// Properties of the streams in one direction between two nodes. Latency, loss (a delay of a retransmission) and
/// partitions are those of the [`LinkConfig`](crate::LinkConfig).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamConfig {
    /// Longest segment, in bytes; each has a random length up to it. Default 64 KiB, as with segmentation offload.
    pub segment_max: usize,
    /// Bytes buffered at the sender before a write blocks. Default 256 KiB.
    pub send_buffer: usize,
    /// Bytes in flight or buffered at the receiver. Default 256 KiB.
    pub receive_buffer: usize,
    /// Bandwidth of one stream. Default 125,000,000, a gigabit link.
    pub bytes_per_second: u64,
    /// Segments delayed by up to `stall_max`, per million. Default 0.
    pub stall_per_million: u32,
    /// Longest stall. Default 5 s.
    pub stall_max: Duration,
    /// Segments in which the connection is reset, at a random byte, per million. Default 0.
    pub reset_per_million: u32,
    /// Segments at which the connection goes silent for ever, at a random byte, per million. Default 0.
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
    /// Bytes of that direction that arrive before it. 0: the fault comes as soon as the connection is established.
    pub after: u64,
    /// Kind of fault.
    pub mishap: StreamMishap,
}

/// Kinds of faults of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamMishap {
    /// Both ends see a reset. The receiver may lose unread data.
    Reset,
    /// Nothing arrives any more in either direction, and neither end is notified.
    Silence,
    /// The rest arrives later by this time.
    Stall(Duration),
}

impl World {
    /// Properties of streams between nodes without settings of their own.
    pub fn set_streams(&self, config: StreamConfig) {
        self.with(|state| state.net.streams.config = config);
    }

    /// Properties of the streams from one node to another; the opposite direction has its own.
    pub fn set_streams_between(&self, from: NodeId, to: NodeId, config: StreamConfig) {
        self.with(|state| state.net.streams.links.insert((from, to), config));
    }

    /// Adds a fault in the direction from one node to another, for the next connection between them that has none,
    /// whichever opens it. Several faults go to as many connections, in order.
    pub fn break_stream(&self, from: NodeId, to: NodeId, fault: StreamFault) {
        self.with(|state| state.net.streams.faults.entry((from, to)).or_default().push_back(fault));
    }

    /// Connections of which at least one end is in use, or has data in flight.
    #[must_use]
    pub fn stream_count(&self) -> usize {
        self.with(|state| state.net.streams.connections.len())
    }
}
