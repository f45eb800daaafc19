//! Receive buffer of a connection, and the ones before it, which are used again when nobody holds their bytes.

use std::collections::VecDeque;

use bytes::BytesMut;

/// Space for messages, and behind the bytes of a file.
const MESSAGES: usize = 16 << 10;
/// Earlier buffers that are kept: what a reader holds and a little more.
const KEPT: usize = 6;

/// The bytes that were received and not understood yet.
///
/// A buffer has space for the rest of one frame with bytes of a file, and a little more. So bytes that a request's
/// receiver has not released keep little else than bytes of the same request in memory.
#[derive(Debug)]
pub(super) struct Buffers {
    pub received: BytesMut,
    /// Each shares its memory with the bytes that were taken from it.
    earlier: VecDeque<BytesMut>,
}

impl Buffers {
    pub fn new(received: BytesMut) -> Self {
        Self { received, earlier: VecDeque::new() }
    }

    /// Provides space for the rest of the present frame, of which so many bytes are missing.
    pub fn make_space(&mut self, missing: usize) {
        let space = self.received.capacity() - self.received.len();
        if space > 0 && space >= missing {
            return;
        }
        let mut next = self.take_earlier(missing + MESSAGES);
        next.extend_from_slice(&self.received);
        let full = std::mem::replace(&mut self.received, next);
        if self.earlier.len() < KEPT {
            self.earlier.push_back(full);
        }
    }

    /// An earlier buffer that is free, or a new one.
    fn take_earlier(&mut self, space: usize) -> BytesMut {
        // The buffers of frames of the same length have the same length.
        let wanted = (space + self.received.len()).next_multiple_of(MESSAGES);
        for _ in 0..self.earlier.len() {
            let Some(mut buffer) = self.earlier.pop_front() else { break };
            buffer.clear();
            if buffer.try_reclaim(wanted) {
                return buffer;
            }
            self.earlier.push_back(buffer);
        }
        if self.earlier.len() == KEPT {
            self.earlier.pop_front();
        }
        BytesMut::with_capacity(wanted)
    }

    /// A connection at rest holds no buffer.
    pub fn release(&mut self) {
        self.earlier.clear();
        if self.received.is_empty() {
            self.received = BytesMut::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_when_nobody_holds_its_bytes() {
        let mut buffers = Buffers::new(BytesMut::new());
        buffers.make_space(100_000);
        let first = buffers.received.as_ptr();
        let held = take_all_but(&mut buffers, 0);
        buffers.make_space(100_000);
        assert_ne!(buffers.received.as_ptr(), first, "the receiver has not released them");
        drop(held);
        drop(take_all_but(&mut buffers, 4));
        buffers.make_space(100_000);
        assert_eq!((&buffers.received[..], buffers.received.as_ptr()), (&[2; 4][..], first));
        assert!(buffers.received.capacity() >= 100_004);
    }

    /// Fills the buffer and takes the bytes, but for the last ones.
    fn take_all_but(buffers: &mut Buffers, left: usize) -> bytes::Bytes {
        let space = buffers.received.capacity();
        buffers.received.resize(space, 2);
        buffers.received.split_to(space - left).freeze()
    }
}
