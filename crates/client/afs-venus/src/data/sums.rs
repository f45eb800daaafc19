//! Checksums of stored ranges: the only evidence of a write through a mapping to a page that was dirty before.

use std::collections::BTreeMap;
use std::ops::Range;

/// Largest range of one checksum: if it has changed, this many bytes are stored again.
pub(crate) const SUMMED_MAX: u64 = 4 << 20;

/// Checksums of ranges that do not overlap. At most as many as the data of the file has ranges, plus one for each
/// [`SUMMED_MAX`] bytes.
#[derive(Clone, Default, Debug)]
pub(crate) struct Sums(BTreeMap<u64, (u64, u32)>);

impl Sums {
    /// Sets the checksum of a range and removes those of overlapping ranges.
    pub fn insert(&mut self, range: Range<u64>, sum: u32) {
        if range.is_empty() {
            return;
        }
        self.forget(range.clone());
        self.0.insert(range.start, (range.end, sum));
    }

    /// Removes the checksums of all ranges that overlap this one.
    pub fn forget(&mut self, range: Range<u64>) {
        while let Some((&start, &(end, _))) = self.0.range(..range.end).next_back() {
            if end <= range.start {
                return;
            }
            self.0.remove(&start);
        }
    }

    /// All ranges and their checksums, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, u32)> + '_ {
        self.0.iter().map(|(&start, &(end, sum))| (start..end, sum))
    }

    /// The ranges within `outer` and their checksums.
    pub fn within(&self, outer: &Range<u64>) -> impl Iterator<Item = (Range<u64>, u32)> + '_ {
        let end = outer.end;
        let from = self.0.range(outer.start..end.max(outer.start));
        from.map(|(&start, &(end, sum))| (start..end, sum)).filter(move |(range, _)| range.end <= end)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_sum_replaces_all_that_it_overlaps() {
        let mut sums = Sums::default();
        for (range, sum) in [(0..10, 1), (10..20, 2), (30..40, 3)] {
            sums.insert(range, sum);
        }
        sums.insert(15..31, 4);
        assert_eq!(sums.iter().collect::<Vec<_>>(), [(0..10, 1), (15..31, 4)]);
        sums.forget(10..15);
        assert_eq!(sums.iter().count(), 2);
        sums.forget(30..u64::MAX);
        sums.insert(5..5, 9);
        assert_eq!(sums.iter().collect::<Vec<_>>(), [(0..10, 1)]);
        sums.insert(10..20, 5);
        assert_eq!(sums.within(&(5..25)).collect::<Vec<_>>(), [(10..20, 5)]);
        assert_eq!((sums.within(&(0..19)).count(), sums.within(&(7..7)).count()), (1, 0));
    }
}
