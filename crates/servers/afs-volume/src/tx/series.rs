//! Rows of series of lists in a transaction of their volume.

use afs_wire::fs::SeriesId;

use super::VolumeTx;
use crate::error::VolumeError;
use crate::key::{self, SERIES};
use crate::series::{self, LastList, Sender};

impl VolumeTx<'_, '_> {
    /// A series begins: its first list, if it is sent after the process was started again, is one of a known series.
    pub fn begin_series(&mut self, series: SeriesId, sender: Sender) -> Result<(), VolumeError> {
        let last = LastList::none(sender, self.now());
        series::put(self.txn, self.header.id, series, &last)
    }

    /// No list of a series comes any more.
    pub fn end_series(&mut self, series: SeriesId) {
        self.txn.delete(SERIES, &key::series(self.header.id, series));
    }
}
