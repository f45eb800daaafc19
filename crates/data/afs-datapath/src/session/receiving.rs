//! Queue of the bytes of one request that have arrived, with the credit that was given to the sender.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::frame::OPEN_END;

/// A piece below this size is copied, so that it does not keep a whole receive buffer in memory.
const COPIED: usize = 4 << 10;
/// Pieces in a queue beyond which small ones share a buffer, so that a sender of single bytes causes no more memory than one of
/// large pieces.
const FEW: usize = 16;

/// The incoming bytes of a request. Of a request that only sends: none.
#[derive(Debug, Default)]
pub(super) struct Receiving {
    queue: VecDeque<Bytes>,
    /// What came after the queue in small pieces: fewer bytes than [`COPIED`].
    small: BytesMut,
    /// Bytes that have not arrived yet.
    left: u64,
    /// Bytes that the sender may send now.
    credit: u64,
    /// Bytes taken from the queue for which no credit was given again.
    taken: u64,
    window: u64,
}

impl Receiving {
    /// `left` bytes will come, and the sender may begin with `window` of them.
    pub fn new(left: u64, window: u32) -> Self {
        Self { left, credit: window.into(), window: window.into(), ..Self::default() }
    }

    /// Bytes that have not arrived yet.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// So many bytes will come.
    pub fn announce(&mut self, left: u64) {
        self.left = left;
    }

    /// The sender says that a stream has ended, and how many bytes it had. `false` if other bytes have arrived, or if it had ended.
    #[must_use]
    pub fn end(&mut self, total: u64) -> bool {
        let is_right = self.left > 0 && OPEN_END - self.left == total;
        if is_right {
            self.left = 0;
        }
        is_right
    }

    /// Lets the sender have so many bytes more under way.
    pub fn widen(&mut self, bytes: u32) {
        self.credit += u64::from(bytes);
        self.window += u64::from(bytes);
    }

    /// Bytes that the sender may have sent before it knew that nobody wants them.
    pub fn outstanding(&self, is_announced: bool) -> u64 {
        if is_announced { self.credit.min(self.left) } else { self.credit }
    }

    /// Whether the next step is the sender's.
    pub fn wants_bytes(&self) -> bool {
        self.left > 0 && self.credit > 0
    }

    /// Takes bytes that have arrived. `false` if they are more than was announced, or more than there was credit for.
    #[must_use]
    pub fn arrived(&mut self, piece: Bytes) -> bool {
        let len = piece.len() as u64;
        if len > self.left || len > self.credit {
            return false;
        }
        self.left -= len;
        self.credit -= len;
        self.enqueue(piece);
        true
    }

    fn enqueue(&mut self, piece: Bytes) {
        let is_small = piece.len() < COPIED;
        if is_small && self.small.is_empty() && self.queue.len() < FEW {
            return self.queue.push_back(Bytes::copy_from_slice(&piece));
        }
        if is_small {
            self.small.extend_from_slice(&piece);
        }
        if !is_small || self.small.len() >= COPIED {
            let small = self.take_small();
            self.queue.extend(small);
        }
        if !is_small {
            self.queue.push_back(piece);
        }
    }

    /// The next piece.
    pub fn take(&mut self) -> Option<Bytes> {
        let piece = self.queue.pop_front().or_else(|| self.take_small())?;
        self.taken += piece.len() as u64;
        Some(piece)
    }

    /// The small pieces that came last, as one.
    fn take_small(&mut self) -> Option<Bytes> {
        (!self.small.is_empty()).then(|| std::mem::take(&mut self.small).freeze())
    }

    /// Credit to be given now, if it is worth a message: half of the window, and the sender needs it.
    pub fn credit_due(&mut self) -> Option<u32> {
        if self.taken < self.window / 2 || self.left <= self.credit {
            return None;
        }
        let bytes = u32::try_from(self.taken).ok()?;
        self.credit += self.taken;
        self.taken = 0;
        Some(bytes)
    }

    /// Whether all bytes have arrived and were taken.
    pub fn is_over(&self) -> bool {
        self.left == 0 && self.queue.is_empty() && self.small.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_credit_or_the_announced_length_is_refused() {
        let mut receiving = Receiving::new(20, 10);
        assert!(receiving.arrived(vec![0; 10].into()));
        assert!(!receiving.arrived(vec![0; 1].into()), "without credit");
        assert_eq!((receiving.take().map(|piece| piece.len()), receiving.credit_due()), (Some(10), Some(10)));
        receiving.announce(5);
        assert!(!receiving.arrived(vec![0; 6].into()), "beyond the length");
        assert!(receiving.arrived(vec![0; 5].into()));
        assert!(!receiving.is_over());
        assert!(receiving.take().is_some() && receiving.is_over());
    }

    #[test]
    fn a_stream_ends_once_and_with_all_its_bytes() {
        let mut receiving = Receiving::new(OPEN_END, 10);
        assert!(receiving.arrived(vec![0; 7].into()) && receiving.take().is_some());
        assert!(!receiving.is_over() && !receiving.end(6) && !receiving.end(8));
        assert!(receiving.end(7) && receiving.is_over());
        assert!(!receiving.end(7) && !receiving.end(OPEN_END));
        assert!(!receiving.arrived(vec![0; 1].into()), "behind the end");
    }

    #[test]
    fn credit_is_given_in_halves_of_the_window_and_only_while_needed() {
        let mut receiving = Receiving::new(100, 10);
        assert!(receiving.arrived(vec![0; 4].into()) && receiving.arrived(vec![0; 4].into()));
        receiving.take();
        assert_eq!(receiving.credit_due(), None);
        receiving.take();
        assert_eq!(receiving.credit_due(), Some(8));
        let mut last = Receiving::new(10, 10);
        assert!(last.arrived(vec![0; 8].into()));
        last.take();
        assert_eq!(last.credit_due(), None, "the rest is covered");
    }

    #[test]
    fn single_bytes_share_buffers_and_keep_their_order() {
        const WINDOW: u32 = 1 << 20;
        let mut receiving = Receiving::new(u64::from(WINDOW), WINDOW);
        let byte = |at: u32| (at % 251) as u8;
        for at in 0..WINDOW - COPIED as u32 {
            assert!(receiving.arrived(vec![byte(at)].into()));
        }
        assert!(receiving.arrived((WINDOW - COPIED as u32..WINDOW).map(byte).collect::<Vec<_>>().into()));
        assert!(receiving.queue.len() <= WINDOW as usize / COPIED + FEW, "{} pieces", receiving.queue.len());
        let mut came = Vec::new();
        while let Some(piece) = receiving.take() {
            came.extend_from_slice(&piece);
        }
        assert!(receiving.is_over() && came == (0..WINDOW).map(byte).collect::<Vec<_>>());
    }
}
