//! Delivery of segments, with retransmission and time-out.

use std::io::ErrorKind;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;

use super::end::Segment;
use super::{Side, StreamId};
use crate::event_log::Line;
use crate::tap::{self, Seen};
use crate::world::State;

impl State {
    /// A segment of `side` is due at the other end. Returns the wakers.
    pub(crate) fn segments_due(&mut self, id: StreamId, side: Side) -> Vec<Waker> {
        let mut woken = Vec::new();
        if let Some(end) = self.end(id, side) {
            end.due = None;
        }
        while self.deliver_next(id, side, &mut woken) {}
        self.remove_if_over(id);
        woken
    }

    /// Delivers the next segment that is due; false if there is none.
    fn deliver_next(&mut self, id: StreamId, side: Side, woken: &mut Vec<Waker>) -> bool {
        if self.trigger_fault(id, side, woken) {
            return true;
        }
        let now = self.now;
        let Some(end) = self.end(id, side) else { return false };
        let Some((at, segment)) = end.wire.front() else { return false };
        if *at > now {
            let at = *at;
            self.schedule_delivery(id, side, at);
            return false;
        }
        let is_acknowledged = segment.is_acknowledged();
        if self.can_arrive(id, side) {
            self.deliver_first(id, side, woken)
        } else if !is_acknowledged && self.needs_no_retransmission(id, side) {
            self.drop_first(id, side)
        } else {
            self.retry(id, side, woken)
        }
    }

    fn deliver_first(&mut self, id: StreamId, side: Side, woken: &mut Vec<Waker>) -> bool {
        let Some(end) = self.end(id, side) else { return false };
        end.unanswered = None;
        let Some((at, segment)) = end.wire.pop_front() else { return false };
        let segment = match (segment, end.fault) {
            (Segment::Data(mut data), Some(fault)) => {
                let before = usize::try_from(fault.after.saturating_sub(end.arrived)).unwrap_or(usize::MAX);
                if 0 < before && before < data.len() {
                    end.wire.push_front((at, Segment::Data(data.split_off(before))));
                }
                Segment::Data(data)
            }
            (segment, _) => segment,
        };
        end.arrived += segment.len() as u64;
        self.note_segment(id, side, &segment);
        woken.extend(self.show_segment(id, side, &segment));
        self.receive_segment(id, side.other(), segment, woken);
        true
    }

    /// Processes a segment that has reached the node of an end.
    fn receive_segment(&mut self, id: StreamId, side: Side, segment: Segment, woken: &mut Vec<Waker>) {
        match segment {
            Segment::Syn => self.take_syn(id),
            Segment::SynAck => self.take_syn_ack(id, woken),
            Segment::Ack => self.take_ack(id, woken),
            Segment::Data(data) => self.take_data(id, side, &data, woken),
            Segment::Window(room) => {
                if let Some(end) = self.end(id, side) {
                    end.credit += room;
                }
                woken.extend(self.pump(id, side));
            }
            Segment::Fin => {
                let Some(end) = self.end(id, side) else { return };
                end.is_at_end = true;
                woken.extend(end.reading.take());
                if !end.is_alive() {
                    self.transmit(id, side, Segment::Reset);
                }
            }
            Segment::Reset => self.take_reset(id, side, woken),
        }
    }

    fn take_data(&mut self, id: StreamId, side: Side, data: &Bytes, woken: &mut Vec<Waker>) {
        let Some(end) = self.end(id, side) else { return };
        // The data can no longer be read: RFC 9293, 3.10.7.1, and RFC 2525, 2.17.
        if !end.is_alive() || !end.is_held {
            return self.transmit(id, side, Segment::Reset);
        }
        if end.error.is_none() {
            end.inbox.extend(data);
            woken.extend(end.reading.take());
        }
    }

    pub(super) fn take_reset(&mut self, id: StreamId, side: Side, woken: &mut Vec<Waker>) {
        let keeps_inbox = self.rng.chance(500_000);
        let Some(end) = self.end(id, side) else { return };
        let error =
            if end.is_established { ErrorKind::ConnectionReset } else { ErrorKind::ConnectionRefused };
        woken.extend(end.fail(error));
        // Unread data: Linux still returns it after a reset, others do not.
        if !keeps_inbox {
            end.inbox.clear();
        }
    }

    /// Whether segments of `side` reach the other end's node now.
    fn can_arrive(&mut self, id: StreamId, side: Side) -> bool {
        let Some(connection) = self.net.streams.connections.get_mut(&id) else { return false };
        if connection.is_silent {
            return false;
        }
        let is_resent = connection.end(side).unanswered.is_some();
        let Some((from, to)) = self.nodes_of(id, side) else { return false };
        let is_up = self.nodes.get(to.0 as usize).is_some_and(|node| node.life.is_alive());
        is_up
            && !self.is_asleep(to)
            && !(is_resent && self.is_asleep(from))
            && (from == to || !self.net.cuts.contains(&(from, to)))
    }

    /// The first segment of an end did not arrive: it is retransmitted later, if the end still exists.
    fn retry(&mut self, id: StreamId, side: Side, woken: &mut Vec<Waker>) -> bool {
        let now = self.now;
        let Some(end) = self.end(id, side) else { return false };
        let (since, pause) = *end.unanswered.get_or_insert((now, RETRY_MIN));
        if !end.is_alive() {
            end.wire.clear();
        } else if now - since > GIVE_UP && end.wire.iter().any(|(_, segment)| segment.is_acknowledged()) {
            woken.extend(end.fail(ErrorKind::TimedOut));
        } else {
            end.unanswered = Some((since, (pause * 2).min(RETRY_MAX)));
            self.schedule_delivery(id, side, now + pause);
        }
        false
    }

    /// Whether a segment that did not arrive, and is not acknowledged, need not be retransmitted: a reset is not, and
    /// a window update is of use only while both ends exist, or while one has bytes for an end that was closed: it
    /// sends them, as a probe of the window (RFC 9293, 3.8.6.1), and gets a reset.
    fn needs_no_retransmission(&mut self, id: StreamId, side: Side) -> bool {
        let Some(connection) = self.net.streams.connections.get_mut(&id) else { return true };
        let other = connection.end(side.other());
        let (is_held, has_bytes) = (other.is_held, !other.outbox.is_empty());
        let is_silent = connection.is_silent;
        let end = connection.end(side);
        let is_of_use = if end.is_held { is_held || has_bytes } else { is_held && has_bytes };
        is_silent || !is_of_use || matches!(end.wire.front(), Some((_, Segment::Reset)))
    }

    fn drop_first(&mut self, id: StreamId, side: Side) -> bool {
        self.end(id, side).is_some_and(|end| end.wire.pop_front().is_some())
    }

    /// Removes a connection that neither end can observe any more.
    pub(super) fn remove_if_over(&mut self, id: StreamId) {
        let Some(connection) = self.net.streams.connections.get(&id) else { return };
        if connection.is_over() {
            // Ends without a holder have no wakers.
            drop(self.forget(id));
        }
    }

    /// Removes a connection. Returns its wakers, to be dropped without a lock.
    pub(super) fn forget(&mut self, id: StreamId) -> Vec<Waker> {
        let Some(connection) = self.net.streams.connections.remove(&id) else { return Vec::new() };
        let mut wakers = Vec::new();
        for mut end in connection.ends {
            if let Some(due) = end.due.take() {
                self.timeline.cancel(due);
            }
            wakers.extend(end.abandon());
        }
        wakers
    }

    /// Shows the data of a segment to the taps of streams.
    fn show_segment(&mut self, id: StreamId, side: Side, segment: &Segment) -> Vec<Waker> {
        let Segment::Data(data) = segment else { return Vec::new() };
        if self.net.stream_taps.is_empty() || self.nodes_of(id, side).is_none_or(|(from, to)| from == to) {
            return Vec::new();
        }
        let Some((from, to)) = self.addresses(id, side) else { return Vec::new() };
        let seen = Seen { at: self.now, from, to, data: data.clone(), doubled: false };
        tap::show(&mut self.net.stream_taps, &seen)
    }

    fn note_segment(&mut self, id: StreamId, side: Side, segment: &Segment) {
        let Some((from, to)) = self.addresses(id, side) else { return };
        let line = Line::Segment { from, to, len: segment.len(), kind: segment.name() };
        self.event_log.add(self.now, line);
    }
}

impl Segment {
    /// Whether the sender retransmits it until it is acknowledged, or the time-out.
    fn is_acknowledged(&self) -> bool {
        !matches!(self, Self::Window(_) | Self::Reset)
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Syn => "SYN",
            Self::SynAck => "SYN ACK",
            Self::Ack => "ACK",
            Self::Data(_) => "data",
            Self::Window(_) => "window",
            Self::Fin => "FIN",
            Self::Reset => "RST",
        }
    }
}

/// First pause before a retransmission, and the longest. Linux: 200 ms, doubled up to 120 s.
pub(super) const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(120);
/// Time-out of retransmission: Linux with the default `tcp_retries2` of 15: about 924 s (tcp(7)).
const GIVE_UP: Duration = Duration::from_secs(924);
