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
pub(crate) struct KeptSeries(Mutex<Map<Key, Vec<Series>>>);

impl KeptSeries {
    /// Takes a series for a list: until it is given back, no other list is sent in it.
    pub fn take(&self, volume: Key) -> Option<Series> {
        let mut kept = self.0.lock();
        let of_volume = kept.get_mut(&volume)?;
        let taken = of_volume.pop();
        if of_volume.is_empty() {
            kept.remove(&volume);
        }
        taken
    }

    /// Gives back a series of which it is known whether its last list was made. Of one of which it is not known nothing more is sent.
    pub fn give_back(&self, volume: Key, series: Series) {
        let mut kept = self.0.lock();
        if kept.values().map(Vec::len).sum::<usize>() < KEPT_MAX {
            kept.entry(volume).or_default().push(series);
        }
    }
}
