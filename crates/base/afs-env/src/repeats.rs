//! Table of what repeats: in each window the first events of a kind are told one by one, and further ones are counted.
//!
//! An attacker can cause refusals and lines of a log without end. The table has a bound, and so has the number of events that are reported
//! in a window, whatever the number of kinds.

use crate::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// Bounds of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RepeatBounds {
    /// Time after which events of all kinds are told again.
    pub window: Duration,
    /// Events of one kind that are told in a window.
    pub told: u64,
    /// Kinds with a place of their own. Events of further kinds are counted only, each at its [`RepeatKind::shared`] one.
    pub kinds: usize,
}

/// A kind of event.
pub trait RepeatKind: Clone + Ord {
    /// The kind that counts the events of this one where the table is full. There should be few: each has a place beyond
    /// [`RepeatBounds::kinds`].
    #[must_use]
    fn shared(&self) -> Self;
}

/// The table. [`Repeats::is_told`] reports an event or counts it: the reported events, and the counts that were taken or wait to be taken,
/// are together all events.
#[derive(Debug)]
pub struct Repeats<K> {
    bounds: RepeatBounds,
    kinds: BTreeMap<K, Seen>,
    /// When the window ends.
    end: Instant,
    /// When the counts are to be taken; none if nothing was counted since they were.
    due: Option<Instant>,
}

/// The events of a kind.
#[derive(Debug, Default)]
struct Seen {
    /// Told in this window.
    told: u64,
    /// Counted and not taken.
    counted: u64,
}

impl<K: RepeatKind> Repeats<K> {
    /// An empty table.
    #[must_use]
    pub const fn new(bounds: RepeatBounds) -> Self {
        Self { bounds, kinds: BTreeMap::new(), end: Instant::ZERO, due: None }
    }

    /// Whether an event is to be told. It is counted otherwise.
    pub fn is_told(&mut self, kind: K, now: Instant) -> bool {
        self.begin_window(now);
        if self.has_place(&kind) {
            let seen = self.kinds.entry(kind.clone()).or_default();
            if seen.told < self.bounds.told {
                seen.told += 1;
                return true;
            }
        }
        self.count(kind, now);
        false
    }

    /// Counts an event that cannot be told.
    pub fn count(&mut self, kind: K, now: Instant) {
        self.begin_window(now);
        let kind = if self.has_place(&kind) { kind } else { kind.shared() };
        self.kinds.entry(kind).or_default().counted += 1;
        self.due.get_or_insert(self.end);
    }

    /// When the counts are to be taken: at the end of the window of the first one.
    #[must_use]
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes the counts: how many events of each kind were not told since they were last taken. Kinds without any are left out.
    pub fn take(&mut self) -> Vec<(K, u64)> {
        self.due = None;
        let counted = self.kinds.iter_mut().filter(|(_, seen)| seen.counted > 0);
        counted.map(|(kind, seen)| (kind.clone(), std::mem::take(&mut seen.counted))).collect()
    }

    fn has_place(&self, kind: &K) -> bool {
        self.kinds.len() < self.bounds.kinds || self.kinds.contains_key(kind)
    }

    /// Begins a window if the last one has ended. Counts that nobody took stay.
    fn begin_window(&mut self, now: Instant) {
        if now < self.end {
            return;
        }
        self.end = now + self.bounds.window;
        self.kinds.retain(|_, seen| {
            seen.told = 0;
            seen.counted > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: RepeatBounds = RepeatBounds { window: Duration::from_secs(60), told: 3, kinds: 4 };

    /// A caller and a call.
    type Called = (u32, u32);

    /// Stands for all callers that have no place.
    const OTHERS: u32 = u32::MAX;

    impl RepeatKind for Called {
        fn shared(&self) -> Self {
            (OTHERS, self.1)
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn the_first_of_a_kind_are_told_in_each_window_and_the_others_counted() {
        let mut repeats = Repeats::new(BOUNDS);
        let told = (0..10).filter(|_| repeats.is_told((1, 1), at(5))).count();
        assert_eq!((told, repeats.is_told((2, 1), at(6))), (3, true));
        assert_eq!(repeats.due(), Some(at(65)), "the end of the window");
        assert!(repeats.is_told((1, 1), at(65)), "a new window");
        assert_eq!(repeats.due(), Some(at(65)), "nobody took what the last one counted");
        assert_eq!(repeats.take(), [((1, 1), 7)]);
        assert_eq!((repeats.due(), repeats.take()), (None, vec![]));
    }

    #[test]
    fn counts_that_are_taken_early_let_no_more_be_told() {
        let mut repeats = Repeats::new(BOUNDS);
        let mut told = 0;
        for _ in 0..10 {
            told += (0..5).filter(|_| repeats.is_told((1, 1), at(1))).count();
            repeats.take();
        }
        assert_eq!(told, 3);
    }

    #[test]
    fn kinds_without_a_place_share_one_and_all_events_add_up() {
        let mut repeats = Repeats::new(BOUNDS);
        let (mut told, mut counted) = (0, 0);
        for second in 0..600_u64 {
            for caller in 0..100 {
                for call in 0..2 {
                    told += u64::from(repeats.is_told((caller, call), at(second)));
                }
            }
            assert!(repeats.kinds.len() <= BOUNDS.kinds + 2, "two calls are shared");
            if second % 7 == 0 {
                counted += repeats.take().iter().map(|(_, count)| count).sum::<u64>();
            }
        }
        counted += repeats.take().iter().map(|(_, count)| count).sum::<u64>();
        assert!(told <= 10 * 4 * 3, "{told} told in ten windows");
        assert_eq!(told + counted, 600 * 100 * 2);
    }

    #[test]
    fn what_cannot_be_told_is_counted_and_takes_no_turn() {
        let mut repeats = Repeats::new(BOUNDS);
        (0..5).for_each(|_| repeats.count((1, 1), at(0)));
        assert_eq!((0..5).filter(|_| repeats.is_told((1, 1), at(0))).count(), 3);
        assert_eq!(repeats.take(), [((1, 1), 7)]);
    }
}
