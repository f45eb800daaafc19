//! Script of a conversation: bytes, read as numbers and choices. Past its end all of them are 0.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

pub struct Script(VecDeque<u8>);

impl Script {
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes.iter().copied().collect())
    }

    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        self.0.pop_front().unwrap_or(0)
    }

    pub fn word(&mut self) -> u32 {
        u32::from_be_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// A number below `end`, which is at most 256.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// True once in about so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 1
    }

    /// Bytes of its own choice, at most so many.
    pub fn bytes(&mut self, most: usize) -> Bytes {
        let len = self.below(most + 1).min(self.0.len());
        self.0.drain(..len).collect()
    }

    /// A part of it, for another reader.
    pub fn part(&mut self, most: usize) -> Self {
        let len = most.min(self.0.len());
        Self(self.0.drain(..len).collect())
    }

    /// How long to wait: mostly not for long.
    pub fn pause(&mut self) -> Duration {
        Duration::from_millis(self.pick(&[0, 1, 1, 10, 100, 1000, 5000, 20_000, 61_000]))
    }

    /// How many bytes are in a frame, or wanted: usual lengths, and those at the bounds.
    pub fn length(&mut self) -> u32 {
        self.pick(&[
            0, 1, 5, 100, 999, 1000, 1000, 4096, 4097, 5000, 20_000, 65_536, 65_537, 100_000, 262_144,
            300_000, 600_000,
        ])
    }
}
