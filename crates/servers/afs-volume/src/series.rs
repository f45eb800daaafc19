//! Series of lists of changes: the number of the last list of each, and what became of it, in a row that is written in the transaction of the
//! list. So a list is made once, however often it is sent.

use afs_kv::Txn;
use afs_wire::error::AbortCode;
use afs_wire::fs::{ListNumber, SeriesId};
use afs_wire::ids::{Fid, Uniquifier, UnixSeconds, ViceId, VnodeId, VolumeId};
use bytes::Bytes;

use crate::codec::{BadRecord, Decoded, Fields, Put};
use crate::error::VolumeError;
use crate::group::rows::some_rows;
use crate::key::{self, SERIES};
use crate::rows::index_damaged;

/// Most rows of the series of a volume whose numbers begin with the same byte: 8,192 in all. One more takes the place of the one that was
/// written first.
pub const ALIKE_MAX: usize = 32;
/// Most changes of a list of a series, as on the wire.
const CHANGES_MAX: usize = afs_wire::fs::CHANGES_MAX;

/// Who sends the lists of a series: no other caller is told what became of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sender {
    /// The machine, as encoded by the file service.
    pub holder: Bytes,
    /// The user.
    pub user: ViceId,
}

/// A list of a series.
#[derive(Clone, Debug)]
pub struct NumberedList {
    /// Its series.
    pub series: SeriesId,
    /// Its number there.
    pub number: ListNumber,
    /// Checksum of its changes, by which it is known when it is sent again.
    pub sum: u32,
    /// Who sends it.
    pub sender: Sender,
}

/// The last list of a series, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastList {
    /// Its number; 0 before the first.
    pub number: ListNumber,
    /// Checksum of its changes.
    pub sum: u32,
    /// Who sent it.
    pub sender: Sender,
    /// When it was made.
    pub at: UnixSeconds,
    /// For each change that was made: number and uniquifier of the object that it made, zeros if it made none.
    pub made: Vec<(VnodeId, Uniquifier)>,
    /// Why the next change failed; 0 if all were made.
    pub code: AbortCode,
}

impl LastList {
    /// That of a series that begins.
    pub(crate) fn none(sender: Sender, at: UnixSeconds) -> Self {
        LastList { number: ListNumber(0), sum: 0, sender, at, made: Vec::new(), code: AbortCode::OK }
    }

    /// The object that a change of the list made, if that change was made.
    pub fn object(&self, change: usize, volume: VolumeId) -> Option<Fid> {
        self.made.get(change).map(|&(vnode, unique)| Fid { volume, vnode, unique })
    }

    /// Whether a list is this one, sent again.
    pub fn is_of(&self, list: &NumberedList) -> bool {
        (self.number, self.sum) == (list.number, list.sum) && self.sender == list.sender
    }

    fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(48 + 8 * self.made.len());
        row.put_u64(self.number.0);
        row.put_u32(self.sum);
        row.put_u32(self.at.0);
        row.put_u32(self.sender.user.0 as u32);
        row.put_counted(&self.sender.holder);
        row.put_u32(self.code.0 as u32);
        row.put_u32(self.made.len() as u32);
        for (vnode, unique) in &self.made {
            row.put_u32(vnode.0);
            row.put_u32(unique.0);
        }
        row
    }

    fn decode(row: Bytes) -> Decoded<Self> {
        let mut fields = Fields::new(row);
        let number = ListNumber(fields.u64()?);
        let (sum, at) = (fields.u32()?, UnixSeconds(fields.u32()?));
        let (user, holder) = (ViceId(fields.u32()? as i32), fields.counted()?);
        let code = AbortCode(fields.u32()? as i32);
        let count = fields.u32()? as usize;
        if count > CHANGES_MAX {
            return Err(BadRecord);
        }
        let mut made = Vec::with_capacity(count);
        for _ in 0..count {
            made.push((VnodeId(fields.u32()?), Uniquifier(fields.u32()?)));
        }
        fields.finish()?;
        Ok(LastList { number, sum, sender: Sender { holder, user }, at, made, code })
    }
}

/// The last list of a row.
pub(crate) fn decoded(row: Bytes) -> Result<LastList, VolumeError> {
    LastList::decode(row).map_err(|_| index_damaged("a row of the table of series cannot be decoded"))
}

/// Checks that a list is the next one of its series.
pub(crate) fn check_next(txn: &Txn<'_>, volume: VolumeId, list: &NumberedList) -> Result<(), VolumeError> {
    let Some(row) = txn.get(SERIES, &key::series(volume, list.series))? else {
        let is_first = list.number == ListNumber(1);
        return if is_first { Ok(()) } else { Err(VolumeError::UnknownSeries) };
    };
    let last = decoded(row)?;
    if last.is_of(list) {
        return Err(VolumeError::MadeBefore);
    }
    let is_next =
        list.number.0.checked_sub(1) == Some(last.number.0) && last.sender.holder == list.sender.holder;
    if is_next { Ok(()) } else { Err(VolumeError::Invalid) }
}

/// Writes the last list of a series. A new series may take the place of another.
pub(crate) fn put(
    txn: &mut Txn<'_>,
    volume: VolumeId,
    series: SeriesId,
    last: &LastList,
) -> Result<(), VolumeError> {
    let key = key::series(volume, series);
    if txn.get(SERIES, &key)?.is_none() {
        make_room(txn, &key)?;
    }
    txn.put(SERIES, &key, last.encode());
    Ok(())
}

/// Removes the row that was written first among those whose series begin with the same byte, if they are too many for one more.
fn make_room(txn: &mut Txn<'_>, key: &[u8]) -> Result<(), VolumeError> {
    let alike = key.get(..5).unwrap_or(key);
    let rows = some_rows(txn, SERIES, alike, key::after_prefix(alike).as_deref(), ALIKE_MAX)?;
    if rows.len() < ALIKE_MAX {
        return Ok(());
    }
    let mut oldest = None;
    for (key, row) in rows {
        let at = decoded(row)?.at;
        if oldest.as_ref().is_none_or(|(oldest, _)| at < *oldest) {
            oldest = Some((at, key));
        }
    }
    if let Some((_, key)) = oldest {
        txn.delete(SERIES, &key);
    }
    Ok(())
}

/// Ends the series of a volume.
pub(crate) fn end_all(txn: &mut Txn<'_>, volume: VolumeId) -> Result<(), VolumeError> {
    let prefix = key::volume(volume);
    for (key, _) in some_rows(txn, SERIES, &prefix, key::after_prefix(&prefix).as_deref(), usize::MAX)? {
        txn.delete(SERIES, &key);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_back_and_no_other_length_is() {
        let sender = Sender { holder: Bytes::from_static(b"machine"), user: ViceId(-204) };
        let made = vec![(VnodeId(2), Uniquifier(9)), (VnodeId(0), Uniquifier(0))];
        let last = LastList {
            number: ListNumber(1 << 40),
            sum: 7,
            sender,
            at: UnixSeconds(5),
            made,
            code: AbortCode(-3),
        };
        let row = Bytes::from(last.encode());
        assert_eq!(LastList::decode(row.clone()), Ok(last));
        assert!((0..row.len()).all(|len| LastList::decode(row.slice(..len)).is_err()));
        assert!(LastList::decode(Bytes::from([&row[..], &[0]].concat())).is_err());
    }
}
