//! Series in which lists of changes are sent, of each volume as many as lists are on their way at the same moment.

use afs_wire::fs::{ListNumber, SeriesId};
use parking_lot::Mutex;

use crate::key::{Key, Map};

/// Most series that are kept for another list.
const KEPT_MAX: usize = 4096;

/// A series, with the number of its last list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Series {
    pub id: SeriesId,
    pub last: ListNumber,
}

impl Series {
    /// One that has no list yet.
    pub fn new(random: u64) -> Series {
        Series { id: SeriesId(random), last: ListNumber(0) }
    }
}

/// Series without a list on its way, by the root of their volume.
#[derive(Default)]
pub(crate) struct KeptSeries(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    of_volumes: Map<Key, Vec<Series>>,
    count: usize,
}

impl KeptSeries {
    /// Takes a series for a list: until it is given back, no other list is sent in it.
    pub fn take(&self, volume: Key) -> Option<Series> {
        let mut kept = self.0.lock();
        let of_volume = kept.of_volumes.get_mut(&volume)?;
        let taken = of_volume.pop();
        if of_volume.is_empty() {
            kept.of_volumes.remove(&volume);
        }
        kept.count -= usize::from(taken.is_some());
        taken
    }

    /// Gives back a series of which it is known whether its last list was made. Of one of which it is not known nothing more is sent.
    pub fn give_back(&self, volume: Key, series: Series) {
        let mut kept = self.0.lock();
        if kept.count < KEPT_MAX {
            kept.count += 1;
            kept.of_volumes.entry(volume).or_default().push(series);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::CellIndex;
    use afs_wire::ids::VolumeId;

    #[test]
    fn a_series_has_one_list_on_its_way_and_as_many_are_kept_as_may_be() {
        let kept = KeptSeries::default();
        let root = |n| Key { cell: CellIndex(0), fid: afs_wire::ids::Fid::root(VolumeId(n)) };
        assert_eq!(kept.take(root(1)), None);
        kept.give_back(root(1), Series::new(7));
        assert_eq!(kept.take(root(2)), None, "of another volume");
        assert_eq!(kept.take(root(1)), Some(Series::new(7)));
        assert_eq!(kept.take(root(1)), None, "it is on its way");
        for n in 0..KEPT_MAX as u32 + 9 {
            kept.give_back(root(n), Series::new(1));
        }
        let all = (0..KEPT_MAX as u32 + 9).filter(|n| kept.take(root(*n)).is_some()).count();
        assert_eq!((all, kept.0.lock().count), (KEPT_MAX, 0));
    }
}
