//! Lists of series.

use afs_volume::{NumberedList, Sender};
use afs_wire::fs::{ListNumber, SeriesId};
use afs_wire::ids::ViceId;

/// A list of one sender; its content is that of its number.
pub fn listed(series: u64, number: u64) -> NumberedList {
    let sender = Sender { holder: b"machine".to_vec().into(), user: ViceId(7) };
    NumberedList { series: SeriesId(series), number: ListNumber(number), sum: number as u32, sender }
}
