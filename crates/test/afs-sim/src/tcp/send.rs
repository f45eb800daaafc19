//! Transmission: from the outbox to segments in flight.

use std::net::SocketAddr;
use std::task::Waker;
use std::time::Duration;

use afs_rpc::Instant;
use bytes::Bytes;

use super::deliver::RETRY_MIN;
use super::end::{End, Fin, Segment};
use super::{Side, StreamConfig, StreamFault, StreamId, StreamMishap};
use crate::node::NodeId;
use crate::timeline::Event;
use crate::world::State;

impl State {
    /// Sends as much as the other end has room for. Returns the writer's waker if there is room for more.
    pub(super) fn pump(&mut self, id: StreamId, side: Side) -> Option<Waker> {
        let config = self.config_of(id, side);
        while let Some(data) = self.next_data(id, side, config.segment_max) {
            self.choose_fault(id, side, data.len(), &config);
            self.transmit(id, side, Segment::Data(data));
        }
        let end = self.end(id, side)?;
        if end.outbox.is_empty() && end.fin == Fin::Wanted {
            end.fin = Fin::Sent;
            self.transmit(id, side, Segment::Fin);
        }
        let end = self.end(id, side)?;
        if end.outbox.len() < config.send_buffer { end.writing.take() } else { None }
    }

    fn next_data(&mut self, id: StreamId, side: Side, segment_max: usize) -> Option<Bytes> {
        let end = self.net.streams.connections.get_mut(&id)?.end(side);
        let most = end.outbox.len().min(end.credit);
        if most == 0 || !end.is_established {
            return None;
        }
        let drawn = usize::try_from(self.rng.between(1, segment_max.max(1) as u64)).unwrap_or(most);
        let data: Bytes = end.outbox.drain(..drawn.min(most)).collect();
        end.credit -= data.len();
        end.sent += data.len() as u64;
        Some(data)
    }

    /// Chooses whether, and at which byte of the next segment, the stream has a fault.
    fn choose_fault(&mut self, id: StreamId, side: Side, len: usize, config: &StreamConfig) {
        if self.nodes_of(id, side).is_none_or(|(from, to)| from == to) {
            return;
        }
        let mishap = if self.rng.chance(config.reset_per_million) {
            StreamMishap::Reset
        } else if self.rng.chance(config.silence_per_million) {
            StreamMishap::Silence
        } else if self.rng.chance(config.stall_per_million) {
            StreamMishap::Stall(self.rng.duration(Duration::ZERO, config.stall_max))
        } else {
            return;
        };
        let back = self.rng.below(len as u64 + 1);
        if let Some(end) = self.end(id, side) {
            let after = end.sent - back;
            end.fault.get_or_insert(StreamFault { after, mishap });
        }
    }

    /// Sends a segment, in order after all earlier ones.
    pub(super) fn transmit(&mut self, id: StreamId, side: Side, segment: Segment) {
        let Some((from, to)) = self.addresses(id, side) else { return };
        let rate = self.config_of(id, side).bytes_per_second.max(1);
        let latency = self.latency(from, to) + self.loss_delay(from, to);
        let now = self.now;
        let Some(end) = self.end(id, side) else { return };
        let takes = Duration::from_nanos((segment.len() as u64).saturating_mul(1_000_000_000) / rate);
        end.busy_until = end.busy_until.max(now) + takes;
        let behind = end.wire.back().map_or(now, |(at, _)| *at);
        let at = (end.busy_until + latency).max(behind);
        end.wire.push_back((at, segment));
        if end.due.is_none() {
            self.schedule_delivery(id, side, at);
        }
    }

    /// Schedules a delivery of an end's segments at `at`.
    pub(super) fn schedule_delivery(&mut self, id: StreamId, side: Side, at: Instant) {
        let due = self.timeline.add(at, Event::Segments(id, side));
        if let Some(end) = self.end(id, side) {
            end.due = Some(due);
        }
    }

    /// A lost segment arrives with the first retransmission.
    fn loss_delay(&mut self, from: SocketAddr, to: SocketAddr) -> Duration {
        let loss = self.net.loss_between(from, to);
        if self.rng.chance(loss) { RETRY_MIN } else { Duration::ZERO }
    }

    pub(super) fn end(&mut self, id: StreamId, side: Side) -> Option<&mut End> {
        self.net.streams.connections.get_mut(&id).map(|connection| connection.end(side))
    }

    /// Source and destination address of an end's segments.
    pub(super) fn addresses(&mut self, id: StreamId, side: Side) -> Option<(SocketAddr, SocketAddr)> {
        let connection = self.net.streams.connections.get_mut(&id)?;
        Some((connection.end(side).address, connection.end(side.other()).address))
    }

    /// Source and destination node of an end's segments, where both are known.
    pub(super) fn nodes_of(&mut self, id: StreamId, side: Side) -> Option<(NodeId, NodeId)> {
        let connection = self.net.streams.connections.get_mut(&id)?;
        Some((connection.end(side).node?, connection.end(side.other()).node?))
    }

    pub(super) fn config_of(&mut self, id: StreamId, side: Side) -> StreamConfig {
        match self.nodes_of(id, side) {
            Some((from, to)) => self.net.streams.config_between(from, to),
            None => self.net.streams.config,
        }
    }
}

impl Segment {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Data(data) => data.len(),
            _ => 0,
        }
    }
}
