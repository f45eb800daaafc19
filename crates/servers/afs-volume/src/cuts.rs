//! Pending cuts of a file: ranges of slots that were cut out, whose rows are not deleted yet.
//!
//! A cut of many slots is recorded in the vnode's record and completed in bounded steps afterwards (table
//! `volume.cuts` lists the vnodes). Until then rows of these slots that are older than the cut are not part
//! of the file. A row written there meanwhile carries the data version that wrote it.

use afs_wire::ids::DataVersion;

use crate::codec::{BadRecord, Decoded, Fields, Put};
use crate::ids::SlotIndex;

/// Pending cuts of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cuts {
    /// Bytes in rows still present that the file is no longer charged for.
    pub(crate) relieved: u64,
    /// In ascending order, without overlap.
    ranges: Vec<Cut>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) first: SlotIndex,
    pub(crate) last: SlotIndex,
    /// The data version that the cut created.
    version: DataVersion,
}

impl Cuts {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The cut to complete next.
    pub(crate) fn first(&self) -> Option<Cut> {
        self.ranges.first().copied()
    }

    /// Whether a row of this slot, written with this version, was cut out.
    pub(crate) fn hide(&self, slot: SlotIndex, version: DataVersion) -> bool {
        self.at(slot).is_some_and(|cut| version < cut.version)
    }

    /// Whether a row written to this slot must carry its version.
    pub(crate) fn cover(&self, slot: SlotIndex) -> bool {
        self.at(slot).is_some()
    }

    /// Cuts out slots, `last` included. Overlapping parts of earlier cuts merge into this one.
    pub(crate) fn add(&mut self, first: SlotIndex, last: SlotIndex, version: DataVersion) {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 2);
        for cut in self.ranges.drain(..) {
            if cut.first < first {
                let before = SlotIndex(first.0 - 1).min(cut.last);
                ranges.push(Cut { last: before, ..cut });
            }
            if cut.last > last {
                let behind = SlotIndex(last.0 + 1).max(cut.first);
                ranges.push(Cut { first: behind, ..cut });
            }
        }
        let at = ranges.partition_point(|cut| cut.first < first);
        ranges.insert(at, Cut { first, last, version });
        self.ranges = ranges;
    }

    /// Records that the first cut has no rows before `next`, or none at all.
    pub(crate) fn completed(&mut self, next: Option<SlotIndex>) {
        match (self.ranges.first_mut(), next) {
            (Some(cut), Some(next)) if next <= cut.last => cut.first = next,
            (Some(_), _) => drop(self.ranges.remove(0)),
            (None, _) => {}
        }
        if self.ranges.is_empty() {
            self.relieved = 0;
        }
    }

    fn at(&self, slot: SlotIndex) -> Option<&Cut> {
        let behind = self.ranges.partition_point(|cut| cut.first <= slot);
        self.ranges[..behind].last().filter(|cut| slot <= cut.last)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.relieved);
        out.put_u32(self.ranges.len() as u32);
        for cut in &self.ranges {
            out.put_u32(cut.first.0);
            out.put_u32(cut.last.0);
            out.put_u64(cut.version.0);
        }
    }

    pub(crate) fn decode(fields: &mut Fields) -> Decoded<Self> {
        let (relieved, count) = (fields.u64()?, fields.u32()?);
        let mut cuts = Self { relieved, ranges: Vec::new() };
        for _ in 0..count {
            let (first, last) = (SlotIndex(fields.u32()?), SlotIndex(fields.u32()?));
            let follows = cuts.ranges.last().is_none_or(|before| before.last < first);
            if first > last || !follows {
                return Err(BadRecord);
            }
            cuts.ranges.push(Cut { first, last, version: DataVersion(fields.u64()?) });
        }
        Ok(cuts)
    }
}

/// Most pending cuts of one file. Further cuts are refused until some are completed.
pub(crate) const CUTS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(ranges: &[(u32, u32, u64)]) -> Cuts {
        let cut = |(first, last, version): &(u32, u32, u64)| Cut {
            first: SlotIndex(*first),
            last: SlotIndex(*last),
            version: DataVersion(*version),
        };
        Cuts { relieved: 0, ranges: ranges.iter().map(cut).collect() }
    }

    fn add(to: &mut Cuts, first: u32, last: u32, version: u64) {
        to.add(SlotIndex(first), SlotIndex(last), DataVersion(version));
    }

    #[test]
    fn a_later_cut_takes_the_place_of_what_it_covers() {
        let mut all = Cuts::default();
        add(&mut all, 100, 199, 5);
        add(&mut all, 300, 399, 6);
        assert_eq!(all, cuts(&[(100, 199, 5), (300, 399, 6)]));
        add(&mut all, 120, 130, 7);
        assert_eq!(all, cuts(&[(100, 119, 5), (120, 130, 7), (131, 199, 5), (300, 399, 6)]));
        add(&mut all, 110, 350, 8);
        assert_eq!(all, cuts(&[(100, 109, 5), (110, 350, 8), (351, 399, 6)]));
        add(&mut all, 0, u32::MAX, 9);
        assert_eq!(all, cuts(&[(0, u32::MAX, 9)]));
    }

    #[test]
    fn rows_older_than_a_cut_are_hidden_and_newer_ones_are_not() {
        let all = cuts(&[(10, 19, 5), (30, 39, 7)]);
        let hidden = |slot, version| all.hide(SlotIndex(slot), DataVersion(version));
        assert!(hidden(10, 0) && hidden(19, 4) && hidden(30, 6) && hidden(39, 0));
        assert!(!hidden(9, 0) && !hidden(20, 0) && !hidden(10, 5) && !hidden(35, 7));
        assert!(all.cover(SlotIndex(15)) && !all.cover(SlotIndex(25)));
    }

    #[test]
    fn the_first_is_worked_off_first() {
        let mut all = cuts(&[(10, 19, 5), (30, 39, 7)]);
        all.relieved = 9;
        all.completed(Some(SlotIndex(15)));
        assert_eq!(all.ranges, cuts(&[(15, 19, 5), (30, 39, 7)]).ranges);
        all.completed(Some(SlotIndex(20)));
        all.completed(None);
        assert_eq!(all, Cuts::default());
    }

    #[test]
    fn cuts_read_back_and_bad_ones_are_refused() {
        let encoded = |cuts: &Cuts| {
            let mut out = Vec::new();
            cuts.encode(&mut out);
            bytes::Bytes::from(out)
        };
        let all = cuts(&[(0, 0, 1), (30, u32::MAX, 7)]);
        assert_eq!(Cuts::decode(&mut Fields::new(encoded(&all))), Ok(all));
        for bad in [cuts(&[(5, 4, 1)]), cuts(&[(5, 9, 1), (9, 10, 1)])] {
            assert_eq!(Cuts::decode(&mut Fields::new(encoded(&bad))), Err(BadRecord));
        }
        let mut lies = 0u64.to_be_bytes().to_vec();
        lies.put_u32(u32::MAX);
        assert_eq!(Cuts::decode(&mut Fields::new(lies.into())), Err(BadRecord));
    }
}
