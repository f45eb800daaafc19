//! Reassembly buffer of a call's receiving half: packets in, a byte stream out.

use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Received packets, starting with the next one to be read. Memory is proportional to the packets held, never to
/// their numbers. Invariants: `ready[i]` is packet `next + out + i`; all of `early` lies beyond the end of `ready`
/// and does not begin there; `held` is the cost of both, and of the packets that are out.
pub(crate) struct ReceiveStream {
    /// Number of the next packet to be read. Everything before is consumed.
    next: u32,
    /// Packets from `next` on that another thread is opening.
    out: u32,
    ready: VecDeque<Received>,
    /// Packets received out of order.
    early: BTreeMap<u32, Received>,
    held: usize,
    /// The unread rest of the packet being read, opened.
    head: Bytes,
    /// Number of the packet marked last.
    last: Option<u32>,
    /// Highest packet number received.
    highest: u32,
    /// Receive window: most packets held unread.
    window: u32,
    /// The window after `open_window`.
    window_open: u32,
    /// The latest hard ack that was sent: the peer has dropped everything before.
    hard_acked: u32,
    /// Reading has ended: a server has begun its reply.
    closed: bool,
}

/// A packet as it arrived, still sealed.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) payload: Bytes,
    pub(crate) checksum: u16,
}

/// Memory per packet beside its payload: an entry of a growing queue or a tree.
pub(crate) const KEPT_COST: usize = 96;
/// Window of a request until its first packets have come in order and the call is admitted; the fixed window of old
/// peers.
const WINDOW_SMALL: u32 = 32;

impl Received {
    /// Bytes of memory that the packet takes.
    pub(crate) fn cost(&self) -> usize {
        self.payload.len() + KEPT_COST
    }
}

/// Classification of an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// The next one in order, with none held after it.
    InOrder,
    /// The next one in order, before others that were held.
    FillsGap,
    /// An earlier packet is missing.
    OutOfOrder,
    Duplicate,
    ExceedsWindow,
    /// The packet contradicts which packet is the last.
    PastEnd,
    /// The stream has been closed for reading.
    Closed,
}

/// Most soft acks in one ACK.
const SOFT_ACKS_MAX: u32 = 255;
const READY_KEPT: usize = 64;

impl ReceiveStream {
    pub(crate) fn new() -> Self {
        ReceiveStream {
            next: 1,
            out: 0,
            ready: VecDeque::new(),
            early: BTreeMap::new(),
            held: 0,
            head: Bytes::new(),
            last: None,
            highest: 0,
            window: 0,
            window_open: 0,
            hard_acked: 1,
            closed: false,
        }
    }

    /// Resets the stream, with a small window that `open_window` raises to `window`.
    pub(crate) fn begin(&mut self, window: u32) {
        debug_assert!(self.held == 0);
        self.next = 1;
        self.last = None;
        self.highest = 0;
        self.window = window.min(WINDOW_SMALL);
        self.window_open = window;
        self.hard_acked = 1;
        self.closed = false;
    }

    pub(crate) fn open_window(&mut self) {
        self.window = self.window_open;
    }

    /// Drops what is buffered; returns the bytes freed.
    pub(crate) fn clear(&mut self) -> usize {
        self.out = 0;
        self.ready.clear();
        self.ready.shrink_to(READY_KEPT);
        self.early.clear();
        self.head = Bytes::new();
        std::mem::take(&mut self.held)
    }

    /// Ends reading, since the reply begins: unread data is dropped. Returns the bytes freed.
    pub(crate) fn close(&mut self) -> usize {
        self.next = self.past_contiguous();
        self.closed = true;
        self.clear()
    }

    /// Classifies a packet; changes nothing.
    pub(crate) fn classify(&self, seq: u32, is_last: bool) -> Arrival {
        if seq < self.past_contiguous() || self.early.contains_key(&seq) {
            return Arrival::Duplicate;
        }
        if self.closed {
            return Arrival::Closed;
        }
        if seq - self.next >= self.window {
            return Arrival::ExceedsWindow;
        }
        let past_end = seq > super::SEQ_MAX || self.last.is_some_and(|last| seq > last || is_last);
        if past_end || is_last && seq < self.highest {
            return Arrival::PastEnd;
        }
        match seq == self.past_contiguous() {
            true if self.early.is_empty() => Arrival::InOrder,
            true => Arrival::FillsGap,
            false => Arrival::OutOfOrder,
        }
    }

    /// Stores a packet that `classify` accepted.
    pub(crate) fn insert(&mut self, seq: u32, is_last: bool, packet: Received) {
        if is_last {
            self.last = Some(seq);
        }
        self.highest = self.highest.max(seq);
        self.held += packet.cost();
        if seq != self.past_contiguous() {
            self.early.insert(seq, packet);
            return;
        }
        self.ready.push_back(packet);
        while let Some(entry) = self.early.first_entry()
            && *entry.key() == self.next + self.out + self.ready.len() as u32
        {
            self.ready.push_back(entry.remove());
        }
    }

    /// Up to `max` bytes of data that is already opened.
    pub(crate) fn take_opened(&mut self, max: usize) -> Option<Bytes> {
        (!self.head.is_empty()).then(|| self.head.split_to(max.min(self.head.len())))
    }

    /// True when the next packet in order is here.
    pub(crate) fn has_ready(&self) -> bool {
        self.out == 0 && !self.ready.is_empty()
    }

    /// The next packet of a class that does not encrypt. It counts as consumed.
    pub(crate) fn take_plain(&mut self) -> Option<Received> {
        let packet = self.ready.pop_front()?;
        self.held -= packet.cost();
        self.next += 1;
        Some(packet)
    }

    /// Takes the next packets, to be opened by any thread: at most `packets` of them, and `bytes` rounded up to a
    /// whole packet. Returns the number of the first. They count as held until `consume` or `reject`.
    pub(crate) fn take_sealed(&mut self, bytes: usize, packets: usize) -> (u32, Vec<Received>) {
        let (mut taken, mut len) = (Vec::new(), 0);
        while (taken.is_empty() || len < bytes)
            && taken.len() < packets
            && let Some(packet) = self.ready.pop_front()
        {
            len += packet.payload.len();
            taken.push(packet);
        }
        self.out = taken.len() as u32;
        (self.next, taken)
    }

    /// Whether exactly these packets are out.
    pub(crate) fn is_out(&self, first: u32, count: u32) -> bool {
        self.next == first && self.out == count
    }

    /// The first `count` of the packets that are out, of this cost, have been opened.
    pub(crate) fn consume(&mut self, count: u32, cost: usize) {
        self.next += count;
        self.out -= count;
        self.held -= cost;
    }

    /// Puts back the unread rest of an opened packet.
    pub(crate) fn keep(&mut self, rest: Bytes) {
        self.head = rest;
    }

    /// False when the first packet that is out was hard-acked, so that the peer cannot retransmit it.
    pub(crate) fn may_reject(&self) -> bool {
        self.next >= self.hard_acked
    }

    /// The first packet that is out, of this cost, failed to open: it counts as missing again. The others that are
    /// out are put back unchanged.
    pub(crate) fn reject(&mut self, cost: usize, others: Vec<Received>) {
        let seq = self.next;
        self.out = 0;
        self.held -= cost;
        self.last = self.last.filter(|last| *last != seq);
        self.early.extend((seq + 1..).zip(others.into_iter().chain(self.ready.drain(..))));
    }

    /// Data or the end of the stream can be read.
    pub(crate) fn is_readable(&self) -> bool {
        !self.head.is_empty() || self.out > 0 || !self.ready.is_empty() || self.is_read_to_end()
    }

    /// Unread packets are held.
    pub(crate) fn has_packets(&self) -> bool {
        self.held > 0
    }

    /// Bytes of memory that the held packets take.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Bytes that a full window of packets of this size takes.
    pub(crate) fn held_max(&self, packet_size: usize) -> usize {
        self.window_open as usize * (packet_size + KEPT_COST)
    }

    /// At least one packet has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        self.highest > 0
    }

    /// Every packet up to the last has arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| self.past_contiguous() > last)
    }

    /// Every packet has been consumed.
    pub(crate) fn is_read_to_end(&self) -> bool {
        self.head.is_empty() && self.last.is_some_and(|last| self.next > last)
    }

    pub(crate) fn highest(&self) -> u32 {
        self.highest
    }

    /// First packet number past everything consumed or in order.
    pub(crate) fn past_contiguous(&self) -> u32 {
        self.next + self.out + self.ready.len() as u32
    }

    /// First packet number past everything held.
    fn past_held(&self) -> u32 {
        self.early.last_key_value().map_or(self.past_contiguous(), |(seq, _)| seq + 1)
    }

    /// The hard ack to be sent now: normally the packets that the application consumed. When more packets are unread
    /// than an ack's list can cover, the excess is hard-acked too, which is permitted since it is never dropped while
    /// the call exists. With windows of up to 255 packets this never happens.
    pub(crate) fn first_for_ack(&mut self) -> u32 {
        let listed = self.past_held().saturating_sub(SOFT_ACKS_MAX);
        let first = self.next.max(listed.min(self.past_contiguous()));
        self.hard_acked = self.hard_acked.max(first);
        first
    }

    /// The window to advertise with that first packet: its right edge is determined by what the application has
    /// consumed.
    pub(crate) fn window_for_ack(&self, first: u32) -> u32 {
        self.window - (first - self.next).min(self.window)
    }

    /// Writes the soft acks from `first` on; returns their number.
    pub(crate) fn soft_acks(&self, first: u32, out: &mut [u8; SOFT_ACKS_MAX as usize]) -> usize {
        let len = (self.past_held() - first).min(SOFT_ACKS_MAX);
        let (end, in_order) = (first + len, self.past_contiguous().saturating_sub(first).min(len));
        out[..in_order as usize].fill(1);
        out[in_order as usize..len as usize].fill(0);
        for seq in self.early.range(first + in_order..end).map(|(seq, _)| *seq) {
            out[(seq - first) as usize] = 1;
        }
        len as usize
    }

    /// The application has read some of the stream.
    pub(crate) fn is_being_read(&self) -> bool {
        self.next > 1 || self.out > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(window: u32) -> ReceiveStream {
        let mut stream = ReceiveStream::new();
        stream.begin(window);
        stream.open_window();
        stream
    }

    fn put(stream: &mut ReceiveStream, seq: u32, last: bool) -> Arrival {
        let arrival = stream.classify(seq, last);
        if matches!(arrival, Arrival::InOrder | Arrival::FillsGap | Arrival::OutOfOrder) {
            let payload = Bytes::copy_from_slice(&seq.to_be_bytes());
            stream.insert(seq, last, Received { payload, checksum: 0 });
        }
        arrival
    }

    fn consume(stream: &mut ReceiveStream) -> Option<u32> {
        let seq = stream.next;
        stream.take_plain().map(|_| seq)
    }

    /// Takes that many packets; returns the cost of each.
    fn take_out(stream: &mut ReceiveStream, packets: usize) -> Vec<Received> {
        let (first, taken) = stream.take_sealed(usize::MAX, packets);
        assert!(stream.is_out(first, taken.len() as u32) && !stream.has_ready());
        taken
    }

    const COST: usize = 4 + KEPT_COST;

    #[test]
    fn order_duplicates_and_the_end() {
        let mut stream = stream(4);
        assert_eq!(put(&mut stream, 2, true), Arrival::OutOfOrder);
        assert_eq!(put(&mut stream, 2, true), Arrival::Duplicate);
        assert_eq!(put(&mut stream, 3, false), Arrival::PastEnd);
        assert_eq!(put(&mut stream, 9, false), Arrival::ExceedsWindow);
        assert!(!stream.is_readable());
        assert_eq!(put(&mut stream, 1, false), Arrival::FillsGap);
        assert!(stream.is_complete());
        assert_eq!(consume(&mut stream), Some(1));
        assert_eq!(consume(&mut stream), Some(2));
        assert!(stream.is_read_to_end());
        assert_eq!(put(&mut stream, 1, false), Arrival::Duplicate);
    }

    #[test]
    fn the_window_counts_from_the_application() {
        let mut stream = stream(4);
        for seq in 1..=4 {
            assert_eq!(put(&mut stream, seq, false), Arrival::InOrder);
        }
        assert_eq!(put(&mut stream, 5, false), Arrival::ExceedsWindow);
        assert_eq!(stream.first_for_ack(), 1);
        consume(&mut stream);
        assert_eq!(put(&mut stream, 5, false), Arrival::InOrder);
    }

    #[test]
    fn a_last_packet_before_later_ones_is_refused() {
        let mut stream = stream(4);
        assert_eq!(put(&mut stream, 3, false), Arrival::OutOfOrder);
        assert_eq!(put(&mut stream, 2, true), Arrival::PastEnd);
    }

    #[test]
    fn more_than_an_ack_can_list_is_acked_hard_and_the_right_edge_stays() {
        let mut stream = stream(1000);
        for seq in 1..=900 {
            put(&mut stream, seq, false);
        }
        let first = stream.first_for_ack();
        assert_eq!(first, 900 - 254);
        assert_eq!(first + stream.window_for_ack(first), 1001);
        let mut soft = [0; 255];
        assert_eq!(stream.soft_acks(first, &mut soft), 255);
        assert_eq!(soft, [1; 255]);
    }

    #[test]
    fn a_rejected_packet_leaves_a_hole_that_the_peer_can_fill() {
        let mut stream = stream(10);
        for seq in 1..=4 {
            put(&mut stream, seq, seq == 4);
        }
        let mut out = take_out(&mut stream, 3);
        assert!(stream.is_readable() && stream.is_complete() && !stream.is_read_to_end());
        assert_eq!((stream.first_for_ack(), stream.held()), (1, 4 * COST), "nothing is acked for good");
        stream.consume(1, COST);
        assert!(stream.may_reject());
        stream.reject(COST, out.split_off(2));
        assert_eq!(stream.held(), 2 * COST);
        assert!(!stream.is_readable() && !stream.is_complete());
        let mut soft = [9; 255];
        assert_eq!((stream.first_for_ack(), stream.soft_acks(2, &mut soft)), (2, 3));
        assert_eq!(&soft[..3], [0, 1, 1]);
        assert_eq!(put(&mut stream, 2, false), Arrival::FillsGap);
        assert!(stream.is_complete());
        for seq in 2..=4 {
            assert_eq!(consume(&mut stream), Some(seq));
        }
        assert_eq!((stream.first_for_ack(), stream.held()), (5, 0));
    }

    #[test]
    fn a_rejected_end_is_forgotten() {
        let mut stream = stream(10);
        put(&mut stream, 1, true);
        take_out(&mut stream, 1);
        stream.reject(COST, Vec::new());
        assert_eq!(
            (put(&mut stream, 1, false), put(&mut stream, 2, true)),
            (Arrival::InOrder, Arrival::InOrder)
        );
    }

    #[test]
    fn a_packet_that_arrives_while_others_are_being_opened_keeps_its_place() {
        let mut stream = stream(10);
        for seq in [1, 2, 4] {
            put(&mut stream, seq, false);
        }
        take_out(&mut stream, 2);
        assert_eq!(
            (put(&mut stream, 1, false), put(&mut stream, 2, false)),
            (Arrival::Duplicate, Arrival::Duplicate)
        );
        assert_eq!(
            (put(&mut stream, 3, false), put(&mut stream, 5, true)),
            (Arrival::FillsGap, Arrival::InOrder)
        );
        let mut soft = [9; 255];
        assert_eq!((stream.first_for_ack(), stream.soft_acks(1, &mut soft)), (1, 5));
        assert_eq!(&soft[..5], [1; 5]);
        stream.consume(2, 2 * COST);
        assert_eq!((1..=3).map(|_| consume(&mut stream)).collect::<Vec<_>>(), [Some(3), Some(4), Some(5)]);
        assert!(stream.is_read_to_end() && stream.held() == 0);
    }

    #[test]
    fn packets_that_the_peer_has_freed_cannot_be_rejected() {
        let mut stream = stream(1000);
        for seq in 1..=300 {
            put(&mut stream, seq, false);
        }
        take_out(&mut stream, 1);
        assert!(stream.may_reject());
        assert_eq!(stream.first_for_ack(), 46);
        assert!(!stream.may_reject());
    }

    #[test]
    fn a_hole_is_never_acked_hard() {
        let mut stream = stream(1000);
        put(&mut stream, 1, false);
        for seq in 3..=900 {
            put(&mut stream, seq, false);
        }
        assert_eq!(stream.first_for_ack(), 2);
        let mut soft = [0; 255];
        assert_eq!(stream.soft_acks(2, &mut soft), 255);
        assert_eq!(&soft[..3], [0, 1, 1]);
    }
}
