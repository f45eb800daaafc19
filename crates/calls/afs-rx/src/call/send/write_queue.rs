//! Byte queue of data written and not yet divided into packets.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// A byte queue that keeps the writer's chunks, so that a packet is normally a slice of one.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    chunks: VecDeque<Bytes>,
    waiting: usize,
    begun: bool,
    finished: bool,
    /// This many of the first bytes queued are sent even if they do not fill a packet.
    flushed: usize,
}

const CHUNKS_KEPT: usize = 16;

impl WriteQueue {
    pub(super) fn reset(&mut self) {
        self.clear();
        self.begun = false;
        self.finished = false;
    }

    pub(super) fn clear(&mut self) {
        self.chunks.clear();
        self.chunks.shrink_to(CHUNKS_KEPT);
        self.waiting = 0;
        self.flushed = 0;
    }

    pub(super) fn write(&mut self, data: &mut Bytes, limit: usize) -> usize {
        self.begun = true;
        let len = data.len().min(limit.saturating_sub(self.waiting));
        if len > 0 {
            self.chunks.push_back(data.split_to(len));
            self.waiting += len;
        }
        len
    }

    pub(super) fn flush(&mut self) {
        self.flushed = self.waiting;
    }

    pub(super) fn finish(&mut self) {
        self.begun = true;
        self.finished = true;
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Length of the next packet's data, if one is to be sent. A packet that is exactly full waits for more data or
    /// the end of the stream, since it may have to be marked last.
    pub(super) fn next_len(&self, capacity: usize) -> Option<usize> {
        match self.waiting > capacity {
            true => Some(capacity),
            false if self.finished || self.flushed > 0 => Some(self.waiting),
            false => None,
        }
    }

    /// Takes the next `len` bytes, and whether they end the stream.
    pub(super) fn cut(&mut self, len: usize) -> (Bytes, bool) {
        let len = len.min(self.waiting);
        self.waiting -= len;
        self.flushed = self.flushed.saturating_sub(len);
        (self.take(len), self.finished && self.waiting == 0)
    }

    fn take(&mut self, len: usize) -> Bytes {
        match self.chunks.front_mut() {
            None => return Bytes::new(),
            Some(front) if front.len() > len => return front.split_to(len),
            Some(front) if front.len() < len => {}
            Some(_) => return self.chunks.pop_front().unwrap_or_default(),
        }
        let mut joined = BytesMut::with_capacity(len);
        while joined.len() < len {
            let Some(front) = self.chunks.front_mut() else { break };
            let part = front.split_to(front.len().min(len - joined.len()));
            joined.extend_from_slice(&part);
            if front.is_empty() {
                self.chunks.pop_front();
            }
        }
        joined.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_slices_or_joins() {
        let mut queue = WriteQueue::default();
        let mut data = Bytes::from_static(b"abcdefgh");
        assert_eq!(queue.write(&mut data, 6), 6);
        assert_eq!(data, "gh");
        queue.write(&mut data, 9);
        assert_eq!(queue.next_len(5), Some(5));
        assert_eq!(queue.cut(5), (Bytes::from_static(b"abcde"), false));
        assert_eq!(queue.next_len(5), None);
        assert_eq!(queue.next_len(3), None, "a full packet may be the last");
        queue.finish();
        assert_eq!(queue.next_len(5), Some(3));
        assert_eq!(queue.cut(3), (Bytes::from_static(b"fgh"), true));
    }

    #[test]
    fn an_empty_stream_has_one_empty_packet() {
        let mut queue = WriteQueue::default();
        assert_eq!(queue.next_len(5), None);
        queue.finish();
        assert_eq!(queue.next_len(5), Some(0));
        assert_eq!(queue.cut(0), (Bytes::new(), true));
    }

    #[test]
    fn flushing_sends_what_is_there() {
        let mut queue = WriteQueue::default();
        queue.write(&mut Bytes::from_static(b"ab"), 9);
        queue.flush();
        assert_eq!(queue.next_len(5), Some(2));
        assert_eq!(queue.cut(2), (Bytes::from_static(b"ab"), false));
        queue.write(&mut Bytes::from_static(b"c"), 9);
        assert_eq!(queue.next_len(5), None);
    }
}
