//! Counter of the fetches in progress for one open handle, and the position of its sequential reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use afs_rpc::sync::OwnedSemaphorePermit;

/// In the place of a position: nobody reads in sequence.
const NOWHERE: u64 = u64::MAX;

/// What is fetched for one reader.
pub(crate) struct Ahead {
    in_progress: Arc<AtomicU32>,
    /// Where the reader is, or [`NOWHERE`].
    from: AtomicU64,
}

/// One fetch in progress, or several in a row; counted until it is dropped.
pub(crate) struct FetchInProgress {
    in_progress: Arc<AtomicU32>,
    /// The part that it takes of what a server may be asked ahead of all readers.
    _of_server: Option<OwnedSemaphorePermit>,
}

impl Default for Ahead {
    fn default() -> Self {
        Ahead { in_progress: Arc::default(), from: AtomicU64::new(NOWHERE) }
    }
}

impl Ahead {
    /// A sequential reader is at a position; `None`: the reader has left its sequence.
    pub fn note(&self, at: Option<u64>) {
        self.from.store(at.unwrap_or(NOWHERE), Ordering::Relaxed);
    }

    /// Where a sequential reader is.
    pub fn position(&self) -> Option<u64> {
        Some(self.from.load(Ordering::Relaxed)).filter(|from| *from != NOWHERE)
    }

    /// Counts a fetch that the reader waits for, however many there are.
    pub fn begin(&self) -> FetchInProgress {
        self.in_progress.fetch_add(1, Ordering::Relaxed);
        self.counted()
    }

    /// Counts a fetch that nobody waits for, if there are fewer than `max` by now and `of_server` grants it.
    pub fn begin_below(
        &self,
        max: u32,
        of_server: impl FnOnce() -> Option<Option<OwnedSemaphorePermit>>,
    ) -> Option<FetchInProgress> {
        let more = |now: u32| (now < max).then_some(now + 1);
        self.in_progress.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        // Undoes the count where the server does not grant it.
        let mut counted = self.counted();
        counted._of_server = of_server()?;
        Some(counted)
    }

    fn counted(&self) -> FetchInProgress {
        FetchInProgress { in_progress: self.in_progress.clone(), _of_server: None }
    }
}

impl FetchInProgress {
    /// Whether there are at most `max`, this one among them.
    pub fn is_within(&self, max: u32) -> bool {
        self.in_progress.load(Ordering::Relaxed) <= max
    }
}

impl Drop for FetchInProgress {
    fn drop(&mut self) {
        self.in_progress.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fetches_that_nobody_waits_for_stay_below_the_bound_and_others_do_not() {
        let ahead = Ahead::default();
        let free = || Some(None);
        let waited = ahead.begin();
        let first = ahead.begin_below(3, free).unwrap();
        let second = ahead.begin_below(3, free).unwrap();
        assert!(ahead.begin_below(3, free).is_none());
        assert!(second.is_within(3));
        let again = ahead.begin();
        assert!(!second.is_within(3));
        drop((waited, again));
        assert!(first.is_within(2) && ahead.begin_below(3, free).is_some());
        drop((first, second));
        assert!(ahead.begin_below(0, free).is_none() && ahead.begin_below(1, free).is_some());
    }

    #[test]
    fn what_a_server_refuses_is_not_counted() {
        let ahead = Ahead::default();
        assert!(ahead.begin_below(1, || None).is_none());
        assert!(ahead.begin_below(1, || Some(None)).is_some());
    }

    #[test]
    fn a_reader_that_jumps_has_no_position() {
        let ahead = Ahead::default();
        assert_eq!(ahead.position(), None);
        ahead.note(Some(7));
        assert_eq!(ahead.position(), Some(7));
        ahead.note(None);
        assert_eq!(ahead.position(), None);
    }
}
