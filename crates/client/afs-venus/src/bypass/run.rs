//! Detector of sequential reads of one open file.
//!
//! A kernel that reads ahead sends several reads at a time, and they may arrive in another order.

use std::ops::Range;

use parking_lot::Mutex;

/// The reads of one handle so far.
#[derive(Default)]
pub(crate) struct Run(Mutex<State>);

#[derive(Default)]
struct State {
    /// Where the next read of the run is expected.
    next: u64,
    /// Bytes of the run.
    bytes: u64,
    is_sequential: bool,
}

impl Run {
    /// Takes note of a read. It continues the run if it begins at most `slack` bytes before or behind its end.
    pub fn note(&self, read: Range<u64>, slack: u64) {
        let mut run = self.0.lock();
        run.is_sequential = run.next.abs_diff(read.start) <= slack;
        if run.is_sequential {
            run.bytes += read.end.saturating_sub(run.next);
            run.next = run.next.max(read.end);
        } else {
            *run = State { next: read.end, bytes: read.end.saturating_sub(read.start), is_sequential: false };
        }
    }

    /// Bytes that were read in sequence up to now.
    pub fn bytes(&self) -> u64 {
        self.0.lock().bytes
    }

    /// Whether the last read continued the run.
    pub fn is_sequential(&self) -> bool {
        self.0.lock().is_sequential
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_order_are_a_run_from_the_first_on() {
        let run = Run::default();
        for n in 0..10 {
            run.note(n * 100..(n + 1) * 100, 50);
            assert!(run.is_sequential());
            assert_eq!(run.bytes(), (n + 1) * 100);
        }
    }

    #[test]
    fn reads_that_overtake_each_other_are_a_run_and_count_once() {
        let run = Run::default();
        for at in [0, 200, 100, 300, 300, 500, 400] {
            run.note(at..at + 100, 200);
            assert!(run.is_sequential(), "at {at}");
        }
        assert_eq!(run.bytes(), 600);
    }

    #[test]
    fn a_jump_begins_another_run() {
        let run = Run::default();
        run.note(0..1000, 10);
        for at in [5000, 100] {
            run.note(at..at + 10, 10);
            assert_eq!((run.is_sequential(), run.bytes()), (false, 10));
        }
        run.note(110..120, 10);
        assert_eq!((run.is_sequential(), run.bytes()), (true, 20));
        run.note(u64::MAX - 5..u64::MAX, 10);
        assert_eq!((run.is_sequential(), run.bytes()), (false, 5));
    }
}
