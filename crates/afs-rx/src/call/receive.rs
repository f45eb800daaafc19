//! The receiving half of a call: packets in, a byte stream out.

use crate::instant::Instant;
use bytes::Bytes;
use std::collections::VecDeque;

/// Received packets from the one the application reads next. Invariants: `ring[i]` is packet `next + i`;
/// the first `contiguous` entries are present; the last entry, if any, is present.
pub(crate) struct ReceiveStream {
    /// The packet the application gets next. Everything before is consumed.
    next: u32,
    ring: VecDeque<Option<Received>>,
    contiguous: usize,
    /// What is left of the packet being read, opened.
    head: Bytes,
    /// Number of the packet marked last.
    last: Option<u32>,
    /// Highest packet seen.
    highest: u32,
    /// Packets the application leaves unread at most.
    window: u32,
    /// Nothing more is wanted: a server has begun its reply.
    closed: bool,
}

/// A packet as it arrived, still sealed.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) payload: Bytes,
    pub(crate) checksum: u16,
}

/// What an arriving packet was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// The next one in order, with nothing after it.
    InOrder,
    /// The next one in order, in front of others that waited for it.
    FillsGap,
    /// Something before it is missing.
    OutOfOrder,
    Duplicate,
    ExceedsWindow,
    /// It contradicts which packet is the last.
    PastEnd,
    /// The stream is not read any more.
    Closed,
}

/// What the application can have.
pub(crate) enum Next {
    /// Bytes that were opened before.
    Opened(Bytes),
    /// A packet to be opened. It counts as consumed.
    Sealed(u32, Received),
    Nothing,
    Eof,
}

/// More soft acks than this cannot be told in one ack.
const SOFT_ACKS_MAX: u32 = 255;
const RING_KEPT: usize = 64;

impl ReceiveStream {
    pub(crate) fn new() -> Self {
        ReceiveStream {
            next: 1,
            ring: VecDeque::new(),
            contiguous: 0,
            head: Bytes::new(),
            last: None,
            highest: 0,
            window: 0,
            closed: false,
        }
    }

    pub(crate) fn begin(&mut self, window: u32) {
        debug_assert!(self.ring.is_empty());
        self.next = 1;
        self.contiguous = 0;
        self.last = None;
        self.highest = 0;
        self.window = window;
        self.closed = false;
    }

    /// Forgets what is buffered; answers how many bytes still sealed that were.
    pub(crate) fn clear(&mut self) -> usize {
        let freed = self.ring.iter().flatten().map(|received| received.payload.len()).sum();
        self.ring.clear();
        self.ring.shrink_to(RING_KEPT);
        self.contiguous = 0;
        self.head = Bytes::new();
        freed
    }

    /// Ends reading, since the reply begins: what is unread is dropped. Answers the bytes dropped.
    pub(crate) fn close(&mut self) -> usize {
        let contiguous = self.contiguous;
        let freed = self.clear();
        self.next += contiguous as u32;
        self.closed = true;
        freed
    }

    /// Room and place for a packet, before anything is changed.
    pub(crate) fn classify(&self, seq: u32, is_last: bool) -> Arrival {
        if seq < self.next {
            return Arrival::Duplicate;
        }
        let offset = (seq - self.next) as usize;
        if self.ring.get(offset).is_some_and(Option::is_some) {
            return Arrival::Duplicate;
        }
        if self.closed {
            return Arrival::Closed;
        }
        if offset >= self.window as usize {
            return Arrival::ExceedsWindow;
        }
        let past_end = seq > super::SEQ_MAX || self.last.is_some_and(|last| seq > last || is_last);
        if past_end || is_last && seq < self.highest {
            return Arrival::PastEnd;
        }
        match offset == self.contiguous {
            true if self.ring.len() == self.contiguous => Arrival::InOrder,
            true => Arrival::FillsGap,
            false => Arrival::OutOfOrder,
        }
    }

    /// Keeps a packet that `classify` found to be wanted.
    pub(crate) fn insert(&mut self, seq: u32, is_last: bool, packet: Received) {
        let offset = (seq - self.next) as usize;
        if is_last {
            self.last = Some(seq);
        }
        self.highest = self.highest.max(seq);
        if offset == self.ring.len() {
            self.ring.push_back(Some(packet));
        } else {
            if offset > self.ring.len() {
                self.ring.resize(offset + 1, None);
            }
            self.ring[offset] = Some(packet);
        }
        while self.ring.get(self.contiguous).is_some_and(Option::is_some) {
            self.contiguous += 1;
        }
    }

    /// The next bytes or packet for the application.
    pub(crate) fn take(&mut self, max: usize) -> Next {
        if !self.head.is_empty() {
            return Next::Opened(self.head.split_to(max.min(self.head.len())));
        }
        if self.contiguous == 0 {
            return if self.is_read_to_end() { Next::Eof } else { Next::Nothing };
        }
        let Some(Some(packet)) = self.ring.pop_front() else { return Next::Nothing };
        let seq = self.next;
        self.contiguous -= 1;
        self.next += 1;
        Next::Sealed(seq, packet)
    }

    /// Puts back what the application did not want of an opened packet.
    pub(crate) fn keep(&mut self, rest: Bytes) {
        self.head = rest;
    }

    /// Something, an end of stream included, can be read.
    pub(crate) fn is_readable(&self) -> bool {
        !self.head.is_empty() || self.contiguous > 0 || self.is_read_to_end()
    }

    /// Packets lie here unread.
    pub(crate) fn has_packets(&self) -> bool {
        !self.ring.is_empty()
    }

    /// Something has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        self.highest > 0
    }

    /// Every packet up to the last has arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| self.next + self.contiguous as u32 > last)
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
        self.next + self.contiguous as u32
    }

    /// The hard ack: normally what the application consumed. When more lies unread than an ack's list can
    /// tell of, the excess is hard-acked too, which it may be since it is never dropped while the call
    /// lives. With windows of up to 255 packets this never happens.
    pub(crate) fn first_for_ack(&self) -> u32 {
        let end = self.next + self.ring.len() as u32;
        self.next.max(end.saturating_sub(SOFT_ACKS_MAX).min(self.past_contiguous()))
    }

    /// The window to advertise with that first packet: its right edge is fixed by the application.
    pub(crate) fn window_for_ack(&self, first: u32) -> u32 {
        self.window - (first - self.next).min(self.window)
    }

    /// Writes the soft acks from `first` on; answers how many.
    pub(crate) fn soft_acks(&self, first: u32, out: &mut [u8; SOFT_ACKS_MAX as usize]) -> usize {
        let skip = (first - self.next) as usize;
        let known = self.ring.iter().skip(skip).zip(out.iter_mut());
        known.map(|(slot, entry)| *entry = u8::from(slot.is_some())).count()
    }

    /// The application has had some of it.
    pub(crate) fn is_being_read(&self) -> bool {
        self.next > 1
    }
}

/// How long an ack for a packet may wait.
pub(crate) fn ack_delay(completes_reply: bool) -> core::time::Duration {
    match completes_reply {
        true => super::ack::FINAL_DELAY,
        false => super::ack::SOFT_DELAY,
    }
}

/// When a client acks a reply that was read to its end.
pub(crate) fn final_ack_at(now: Instant, pending: Instant) -> Instant {
    pending.min(now + super::ack::FINAL_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(window: u32) -> ReceiveStream {
        let mut stream = ReceiveStream::new();
        stream.begin(window);
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
        match stream.take(9) {
            Next::Sealed(seq, _) => Some(seq),
            _ => None,
        }
    }

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
        assert!(matches!(stream.take(9), Next::Eof));
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
