//! Retransmission queue of a call's sending half: a byte stream in, numbered packets out, kept until each is
//! acknowledged.

mod probe;
mod received_acks;
mod retransmit;
#[cfg(test)]
mod tests;
mod write_queue;

#[cfg(test)]
pub(crate) use received_acks::AckResult;
pub(crate) use received_acks::Freshness;
pub(crate) use retransmit::Timeout;

use crate::Instant;
use crate::congestion::{Congestion, Loss, NewReno};
use crate::rtt::{Awaited, Rtt};
use bytes::Bytes;
use core::time::Duration;
use std::collections::VecDeque;
use write_queue::WriteQueue;

/// Data waits in the queue until it is sent; only then is it divided into packets, which stay in the ring until
/// hard-acked. Invariants: `ring[i]` is packet `first + i`; `in_flight`, `soft_acked` and `lost` count the ring's
/// packets in those states and add up to its length.
pub(crate) struct SendStream {
    queue: WriteQueue,
    /// The last packet has been created.
    last_cut: bool,
    /// The peer has everything, or needs no more.
    closed: bool,
    /// Lowest packet that is not hard-acked.
    first: u32,
    ring: VecDeque<Sent>,
    in_flight: u32,
    soft_acked: u32,
    lost: u32,
    /// Lower bound of the numbers of lost packets.
    resend_from: u32,
    /// Number of the next transmission. A retransmission gets a new one, so their order shows what is lost.
    next_transmission: u64,
    /// Latest transmission known to have arrived, plus one.
    transmissions_acked: u64,
    /// Unacknowledged transmissions, oldest first, first ones and retransmissions apart; entries of packets acked or
    /// retransmitted since are stale.
    transmissions: [VecDeque<(u64, u32)>; 2],
    /// The latest ack does not cover packets from here on.
    known_to: u32,
    /// Losses of transmissions before this one belong to a loss event that the congestion window already reflects.
    recovery: u64,
    /// The first retransmission after a loss need not wait for room in the reduced window.
    fast_resend: bool,
    /// The peer's receive window, counted from `first`.
    window: u32,
    /// `previous` of the latest ack with the current `first`.
    ack_previous: u32,
    /// Serial of the latest ack.
    ack_serial: u32,
    congestion: Box<dyn Congestion>,
    /// The last burst was ended by the congestion window, not by a lack of data.
    limited: bool,
    timeouts_in_row: u32,
    resent_any: bool,
    /// The first packet is not sent again.
    head_is_final: bool,
    /// When the last packet was first sent.
    last_sent_at: Option<Instant>,
    /// Server: the request was acked, so that its client will not repeat it where the reply is lost.
    request_acked: bool,
    /// At `resend_at` one packet is sent again, to learn about the others.
    probes: bool,
    /// When what is in flight is probed or declared lost, or a ping asks about a closed window.
    pub(crate) resend_at: Instant,
    /// When a packet that others have overtaken is declared lost.
    pub(crate) reorder_at: Instant,
}

/// One packet in the ring.
#[derive(Debug)]
struct Sent {
    /// Its data, not sealed: each transmission is sealed anew.
    payload: Bytes,
    is_last: bool,
    resent: bool,
    state: State,
    first_serial: u32,
    last_serial: u32,
    transmission: u64,
    first_sent_at: Instant,
    sent_at: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    InFlight,
    SoftAcked,
    Lost,
}

/// The next packet to transmit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pick {
    /// A retransmission, with this much data.
    Again(u32, usize),
    /// A new packet with this much data.
    New(usize),
    Nothing,
}

/// A packet to be encoded.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) seq: u32,
    pub(crate) payload: &'a Bytes,
    pub(crate) is_last: bool,
    pub(crate) request_ack: bool,
}

/// Index into `transmissions`.
const FIRST: usize = 0;
const REPEATED: usize = 1;
const RING_KEPT: usize = 64;

impl SendStream {
    pub(crate) fn new() -> Self {
        SendStream {
            queue: WriteQueue::default(),
            last_cut: false,
            closed: false,
            first: 1,
            ring: VecDeque::new(),
            in_flight: 0,
            soft_acked: 0,
            lost: 0,
            resend_from: 1,
            next_transmission: 0,
            transmissions_acked: 0,
            transmissions: [VecDeque::new(), VecDeque::new()],
            known_to: u32::MAX,
            recovery: 0,
            fast_resend: false,
            window: 1,
            ack_previous: 0,
            ack_serial: 0,
            congestion: Box::new(NewReno::new()),
            limited: false,
            timeouts_in_row: 0,
            resent_any: false,
            head_is_final: false,
            last_sent_at: None,
            request_acked: false,
            probes: false,
            resend_at: Instant::FAR_FUTURE,
            reorder_at: Instant::FAR_FUTURE,
        }
    }

    /// Resets the stream for a new call. Windows are in packets.
    pub(crate) fn begin(&mut self, window: u32, congestion_window: u32, congestion_window_max: u32) {
        self.clear();
        self.queue.reset();
        self.last_cut = false;
        self.closed = false;
        self.first = 1;
        self.next_transmission = 0;
        self.transmissions_acked = 0;
        self.recovery = 0;
        self.fast_resend = false;
        self.window = window.max(1);
        self.ack_previous = 0;
        self.ack_serial = 0;
        self.congestion.reset(congestion_window, congestion_window_max);
        self.limited = false;
        self.timeouts_in_row = 0;
        self.resent_any = false;
        self.head_is_final = false;
        self.last_sent_at = None;
        self.request_acked = false;
    }

    /// Drops all packets and data.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.first = self.next();
        self.ring.clear();
        self.ring.shrink_to(RING_KEPT);
        for queue in &mut self.transmissions {
            queue.clear();
            queue.shrink_to(RING_KEPT);
        }
        self.known_to = u32::MAX;
        (self.in_flight, self.soft_acked, self.lost) = (0, 0, 0);
        self.resend_from = self.first;
        self.resend_at = Instant::FAR_FUTURE;
        self.reorder_at = Instant::FAR_FUTURE;
    }

    /// The peer needs no more: the rest is dropped, and later writes are discarded.
    pub(crate) fn close(&mut self) {
        self.clear();
        self.closed = true;
    }

    /// The number of the next new packet.
    fn next(&self) -> u32 {
        self.first + self.ring.len() as u32
    }

    /// Takes data until `limit` bytes are queued. A closed stream discards it.
    pub(crate) fn write(&mut self, data: &mut Bytes, limit: usize) -> usize {
        if self.closed {
            let len = data.len();
            data.clear();
            return len;
        }
        self.queue.write(data, limit)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    pub(crate) fn flush(&mut self) {
        self.queue.flush();
    }

    pub(crate) fn finish(&mut self) {
        self.queue.finish();
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.queue.is_finished()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The application has begun to write.
    pub(crate) fn has_begun(&self) -> bool {
        self.queue.has_begun()
    }

    pub(crate) fn has_unacked(&self) -> bool {
        self.in_flight + self.lost > 0
    }

    /// The whole stream was sent, and every packet is acked, hard or soft.
    pub(crate) fn is_delivered(&self) -> bool {
        self.queue.is_finished() && (self.closed || self.last_cut && !self.has_unacked())
    }

    /// At least one packet was sent.
    pub(crate) fn was_sent(&self) -> bool {
        self.next_transmission > 0
    }

    /// More than one packet was sent.
    pub(crate) fn is_long(&self) -> bool {
        self.next() > 2
    }

    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    pub(crate) fn congestion_window(&self) -> u32 {
        self.congestion.window()
    }

    /// Only the peer's window prevents sending.
    fn is_blocked_by_peer(&self) -> bool {
        !self.closed && !self.last_cut && !self.has_unacked() && self.ring.len() as u32 >= self.window
    }

    pub(crate) fn can_send(&self, capacity: usize) -> bool {
        match self.lost > 0 {
            true => self.may_resend(),
            false => self.in_flight < self.congestion.window() && self.has_new(capacity),
        }
    }

    fn may_resend(&self) -> bool {
        !self.lacks_head() && (self.fast_resend || self.in_flight < self.congestion.window())
    }

    /// From now on the first packet is not sent again, and nothing else while that is lost: without it the rest is nothing
    /// to a peer.
    pub(crate) fn end_head(&mut self) {
        self.head_is_final = true;
    }

    fn lacks_head(&self) -> bool {
        let head_is_lost = |head: &Sent| head.state == State::Lost;
        self.head_is_final && self.first == 1 && self.ring.front().is_some_and(head_is_lost)
    }

    fn has_new(&self, capacity: usize) -> bool {
        !self.closed
            && !self.last_cut
            && (self.ring.len() as u32) < self.window
            && self.queue.next_len(capacity).is_some()
    }

    /// Chooses the next packet: lost ones first. `capacity` is the data that one packet holds.
    pub(crate) fn pick(&mut self, capacity: usize) -> Pick {
        if self.lost > 0 {
            self.limited |= !self.may_resend();
            return if self.may_resend() { self.pick_lost() } else { Pick::Nothing };
        }
        if !self.has_new(capacity) {
            self.limited = false;
            return Pick::Nothing;
        }
        let open = self.in_flight < self.congestion.window();
        self.limited = !open;
        match self.queue.next_len(capacity) {
            Some(len) if open => Pick::New(len),
            _ => Pick::Nothing,
        }
    }

    /// Takes a new packet's data from the queue: its number, the data, and whether it is the last.
    pub(crate) fn cut(&mut self, len: usize) -> (u32, Bytes, bool) {
        let (data, is_last) = self.queue.cut(len);
        self.last_cut = is_last;
        (self.next(), data, is_last)
    }

    /// Puts a new packet into the ring as sent.
    pub(crate) fn send_new(&mut self, now: Instant, serial: u32, packet: (Bytes, bool)) -> Outgoing<'_> {
        let (seq, request_ack) = (self.next(), self.wants_ack(packet.1));
        let transmission = self.transmit(seq, FIRST);
        self.in_flight += 1;
        self.last_sent_at = packet.1.then_some(now);
        self.ring.push_back(Sent {
            payload: packet.0,
            is_last: packet.1,
            resent: false,
            state: State::InFlight,
            first_serial: serial,
            last_serial: serial,
            transmission,
            first_sent_at: now,
            sent_at: now,
        });
        let sent = &self.ring[self.ring.len() - 1];
        Outgoing { seq, payload: &sent.payload, is_last: sent.is_last, request_ack }
    }

    fn transmit(&mut self, seq: u32, kind: usize) -> u64 {
        let transmission = self.next_transmission;
        self.next_transmission += 1;
        self.transmissions[kind].push_back((transmission, seq));
        transmission
    }

    /// docs/protocol/rx.md "7. Windows, RTT, ...": REQUEST_ACK on packets that are not the last while the
    /// congestion window is tiny, and (see `retransmit`) on every retransmission.
    fn wants_ack(&self, is_last: bool) -> bool {
        !is_last && self.congestion.window() <= 2
    }
}
