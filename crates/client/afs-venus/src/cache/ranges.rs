//! Sets of byte ranges.

use std::ops::Range;

use rangemap::RangeSet;

/// A set of bytes, stored as ranges that neither touch nor overlap. All methods accept empty ranges.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ranges(RangeSet<u64>);

impl Ranges {
    /// No bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes `0..len`.
    pub fn whole(len: u64) -> Self {
        let mut all = Self::new();
        all.insert(0..len);
        all
    }

    /// Adds a range.
    pub fn insert(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.0.insert(range);
        }
    }

    /// Removes a range.
    pub fn remove(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.0.remove(range);
        }
    }

    /// True if the whole range is in the set. An empty range is.
    pub fn contains(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.0.get(&range.start).is_some_and(|held| held.end >= range.end)
    }

    /// The range that contains a position.
    pub fn around(&self, at: u64) -> Option<Range<u64>> {
        self.0.get(&at).cloned()
    }

    /// Start of the first range that begins at or after a position.
    pub fn next_start(&self, from: u64) -> Option<u64> {
        self.0.overlapping(from..u64::MAX).map(|range| range.start).find(|start| *start >= from)
    }

    /// The parts of `within` that are not in the set, in order.
    pub fn gaps(&self, within: Range<u64>) -> Vec<Range<u64>> {
        self.0.gaps(&within).collect()
    }

    /// The parts of `within` that are in the set, in order.
    pub fn parts(&self, within: Range<u64>) -> Vec<Range<u64>> {
        let clamped = |held: &Range<u64>| held.start.max(within.start)..held.end.min(within.end);
        self.0.overlapping(&within).map(clamped).filter(|part| !part.is_empty()).collect()
    }

    /// All ranges, in order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.iter().cloned()
    }

    /// Number of bytes.
    pub fn bytes(&self) -> u64 {
        self.iter().map(|r| r.end - r.start).sum()
    }

    /// Number of ranges.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The end of the last range; 0 if there is none.
    pub fn end(&self) -> u64 {
        self.0.last().map_or(0, |range| range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the set with an array of booleans, over random histories on a short line of bytes.
    #[test]
    fn ranges_behave_as_sets_of_bytes() {
        let mut seed = 7u64;
        for _ in 0..2_000 {
            let mut ranges = Ranges::new();
            let mut bytes = [false; 24];
            for _ in 0..8 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (a, b) = ((seed >> 33) % 24, (seed >> 43) % 25);
                let range = a.min(b)..a.max(b);
                let add = seed >> 60 & 1 == 1;
                if add {
                    ranges.insert(range.clone())
                } else {
                    ranges.remove(range.clone())
                }
                range.clone().for_each(|i| bytes[i as usize] = add);
                check(&ranges, &bytes);
            }
        }
    }

    fn check(ranges: &Ranges, bytes: &[bool; 24]) {
        let held: Vec<u64> = ranges.iter().flatten().collect();
        let want: Vec<u64> = (0..24).filter(|&i| bytes[i as usize]).collect();
        assert_eq!(held, want);
        assert_eq!(ranges.bytes(), want.len() as u64);
        let gaps: Vec<u64> = ranges.gaps(3..20).into_iter().flatten().collect();
        assert_eq!(gaps, (3..20).filter(|&i| !bytes[i as usize]).collect::<Vec<_>>());
        let parts: Vec<u64> = ranges.parts(3..20).into_iter().flatten().collect();
        assert_eq!(parts, (3..20).filter(|&i| bytes[i as usize]).collect::<Vec<_>>());
        assert_eq!(ranges.contains(&(5..9)), (5..9).all(|i| bytes[i as usize]));
        assert_eq!(ranges.around(7).is_some(), bytes[7]);
        assert!(ranges.around(7).is_none_or(|range| range.contains(&7) && ranges.contains(&range)));
        let start = (8..24).find(|&i| bytes[i] && !bytes[i - 1]);
        assert_eq!(ranges.next_start(8), start.map(|i| i as u64));
    }

    #[test]
    fn neighbours_become_one() {
        let mut ranges = Ranges::whole(4);
        ranges.insert(4..8);
        ranges.insert(12..16);
        assert_eq!(ranges.count(), 2);
        ranges.insert(8..12);
        assert_eq!((ranges.count(), ranges.end()), (1, 16));
    }

    #[test]
    fn an_empty_range_changes_nothing_and_finds_nothing() {
        let mut ranges = Ranges::whole(4);
        ranges.insert(9..9);
        ranges.remove(2..2);
        assert_eq!(ranges, Ranges::whole(4));
        assert!(ranges.contains(&(9..9)));
        assert!(ranges.parts(2..2).is_empty() && ranges.gaps(9..9).is_empty());
    }
}
