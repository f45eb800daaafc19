//! Queue of the bytes of one request that leave, with the credit that the receiver has given.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::frame::{DATA_MAX, OPEN_END};

/// Bytes that wait to be sent before their source is asked to pause.
const QUEUE: usize = DATA_MAX;

/// The outgoing bytes of a request. Of a request that only receives: none.
#[derive(Debug, Default)]
pub(super) struct Sending {
    queue: VecDeque<Bytes>,
    queued: usize,
    /// Bytes that are still to be sent, those in the queue included.
    left: u64,
    /// Bytes that the receiver will take, those in the queue included.
    credit: u64,
}

impl Sending {
    pub fn new(left: u64, credit: u64) -> Self {
        Self { left, credit, ..Self::default() }
    }

    pub fn left(&self) -> u64 {
        self.left
    }

    /// So many bytes will follow in all.
    pub fn announce(&mut self, left: u64) {
        self.left = left;
    }

    pub fn add_credit(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes.into());
    }

    /// Whether the next step is the receiver's.
    pub fn wants_credit(&self) -> bool {
        self.left > 0 && self.credit == 0
    }

    /// Whether a frame can be sent now.
    pub fn is_ready(&self) -> bool {
        self.queued > 0 && self.credit > 0
    }

    /// Bytes that the source may add and that can be sent at once; 0: it has to wait.
    pub fn wanted(&self) -> usize {
        if self.queued >= QUEUE {
            return 0;
        }
        let credit = usize::try_from(self.credit).unwrap_or(usize::MAX);
        let unread = usize::try_from(self.left).unwrap_or(usize::MAX) - self.queued;
        credit.saturating_sub(self.queued).min(unread).min(DATA_MAX)
    }

    /// Bytes that were not given to it yet.
    pub fn missing(&self) -> u64 {
        self.left - self.queued as u64
    }

    /// Whether nothing waits to be sent.
    pub fn is_drained(&self) -> bool {
        self.queued == 0
    }

    /// A stream ends here; nothing may be in the queue. Returns how many bytes it had.
    pub fn close(&mut self) -> u64 {
        debug_assert!(self.is_drained(), "the end of a stream follows its bytes");
        OPEN_END - std::mem::take(&mut self.left)
    }

    /// Whether a source that does not look at the credit may add a piece of any size.
    pub fn has_room(&self) -> bool {
        self.queued < QUEUE
    }

    /// Adds bytes. The caller has compared them with [`Sending::missing`].
    pub fn push(&mut self, piece: Bytes) {
        self.queued += piece.len();
        self.queue.push_back(piece);
    }

    /// Takes the bytes of the next frame from the queue into `out`. Returns how many they are.
    pub fn next_frame(&mut self, out: &mut Vec<Bytes>) -> usize {
        let most = DATA_MAX.min(self.queued).min(usize::try_from(self.credit).unwrap_or(usize::MAX));
        let mut left = most;
        while left > 0
            && let Some(mut piece) = self.queue.pop_front()
        {
            if piece.len() > left {
                self.queue.push_front(piece.split_off(left));
            }
            left -= piece.len();
            out.push(piece);
        }
        self.queued -= most;
        self.left -= most as u64;
        self.credit -= most as u64;
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_follow_credit_and_the_bound() {
        let mut sending = Sending::new(600_000, 300_000);
        assert_eq!(sending.wanted(), DATA_MAX);
        sending.push(vec![1; 300_000].into());
        assert_eq!((sending.wanted(), sending.missing()), (0, 300_000));
        let mut out = Vec::new();
        assert_eq!(sending.next_frame(&mut out), DATA_MAX);
        assert_eq!(sending.next_frame(&mut out), 300_000 - DATA_MAX);
        assert!(sending.wants_credit() && !sending.is_ready());
        sending.add_credit(10);
        assert_eq!(sending.wanted(), 10);
        assert_eq!(out.iter().map(Bytes::len).sum::<usize>(), 300_000);
    }

    #[test]
    fn a_source_pauses_while_the_queue_is_full_whatever_the_credit() {
        let mut sending = Sending::new(10_000_000, 10_000_000);
        sending.push(vec![1; QUEUE].into());
        assert!(sending.wanted() == 0 && !sending.has_room());
        assert_eq!(sending.next_frame(&mut Vec::new()), DATA_MAX);
        assert!(sending.wanted() == DATA_MAX && sending.has_room());
    }

    #[test]
    fn small_pieces_share_a_frame() {
        let mut sending = Sending::new(30, 25);
        (0..3).for_each(|n| sending.push(vec![n; 10].into()));
        let mut out = Vec::new();
        assert_eq!(sending.next_frame(&mut out), 25);
        assert_eq!(out.concat(), [vec![0; 10], vec![1; 10], vec![2; 5]].concat());
        assert_eq!(sending.left(), 5);
    }
}
