//! Path size discovery (RFC 8899, by padded pings): the largest packet that has been shown to arrive at a peer. Some paths swallow large
//! packets without a word.

use crate::Instant;
use crate::slab::Key;
use core::time::Duration;

/// What is known of the path to one peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathSize {
    /// Packets up to this size arrive.
    proven: usize,
    /// The size of the last padded ping, with its connection and serial.
    asked: Option<(usize, Key, u32)>,
    /// When the next ping may be sent.
    ask_at: Instant,
    /// Pause after the next ping.
    pause: Duration,
}

/// Pause after the first ping without an answer; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(250);
/// A path that has grown is noticed within this time.
const PAUSE_MAX: Duration = Duration::from_secs(64);

impl PathSize {
    pub(crate) fn new(proven: usize) -> Self {
        PathSize { proven, asked: None, ask_at: Instant::ZERO, pause: PAUSE_MIN }
    }

    /// The largest packet that is sent where up to `most` are wanted.
    pub(crate) fn limit(&self, most: usize) -> usize {
        most.min(self.proven)
    }

    /// Whether a ping of `size` bytes is to be sent now.
    pub(crate) fn wants_ping(&self, now: Instant, size: usize) -> bool {
        size > self.proven && now >= self.ask_at
    }

    /// A ping padded to `size` is sent.
    pub(crate) fn pinged(&mut self, now: Instant, size: usize, connection: Key, serial: u32) {
        self.asked = Some((size, connection, serial));
        self.ask_at = now + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// A ping with this serial was answered.
    pub(crate) fn answered(&mut self, connection: Key, serial: u32) {
        let Some((size, ..)) = self.asked.filter(|asked| (asked.1, asked.2) == (connection, serial)) else {
            return;
        };
        *self = PathSize { ask_at: self.ask_at, ..PathSize::new(self.proven.max(size)) };
    }

    /// Packets over `size` did not arrive, and nothing else did: the peer may be dead, or its path have become narrow.
    pub(crate) fn doubted(&mut self, size: usize) {
        *self = PathSize::new(size.min(self.proven));
    }

    /// Packets over `size` do not arrive any more.
    pub(crate) fn narrowed(&mut self, now: Instant, size: usize) {
        let proven = size.min(self.proven);
        *self = PathSize { proven, asked: None, ask_at: now + PAUSE_MAX, pause: PAUSE_MAX };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key { slot: 1, generation: 1 };

    #[test]
    fn a_size_is_used_once_it_is_answered() {
        let mut path = PathSize::new(1232);
        let now = Instant::ZERO;
        assert!(path.wants_ping(now, 1444) && !path.wants_ping(now, 1232));
        path.pinged(now, 1444, KEY, 7);
        path.answered(KEY, 6);
        path.answered(Key { slot: 2, ..KEY }, 7);
        assert_eq!(path.limit(1444), 1232, "another's answer");
        path.answered(KEY, 7);
        assert_eq!((path.limit(1444), path.limit(600), path.limit(9000)), (1444, 600, 1444));
    }

    #[test]
    fn a_silent_path_is_asked_less_and_less() {
        let (mut path, mut now, mut pings) = (PathSize::new(1232), Instant::ZERO, 0);
        while now < Instant::ZERO + Duration::from_secs(600) {
            if path.wants_ping(now, 1444) {
                path.pinged(now, 1444, KEY, 7);
                pings += 1;
            }
            now += Duration::from_millis(50);
        }
        assert_eq!(pings, 17);
        path.answered(KEY, 7);
        assert_eq!(path.limit(1444), 1444);
        path.narrowed(now, 1232);
        assert!(!path.wants_ping(now + PAUSE_MIN, 1444));
        path.answered(KEY, 7);
        assert_eq!(path.limit(1444), 1232, "an answer of before");
    }
}
