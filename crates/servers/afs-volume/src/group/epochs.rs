//! Rows of the epochs of a group: referenced by volumes, staged by a restore, or to be deleted.

use afs_kv::{Range, Snapshot, Txn};

use crate::error::VolumeError;
use crate::ids::{Epoch, GroupId};
use crate::key::{self, EPOCHS};
use crate::location::Location;
use crate::rows::index_damaged;

/// The references to an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Number of volumes; an epoch with 0 is to be deleted.
    By(u32),
    /// A restore that is not committed. Without a running restore it is to be deleted.
    Staged,
}

/// Access to rows in key order.
pub(crate) trait EpochRows {
    fn epoch_rows(&self, first: &[u8], end: Option<&[u8]>, reverse: bool) -> Range<'_>;
}

impl EpochRows for Txn<'_> {
    fn epoch_rows(&self, first: &[u8], end: Option<&[u8]>, reverse: bool) -> Range<'_> {
        self.range(EPOCHS, key::bounds(first, end), reverse)
    }
}

impl EpochRows for Snapshot {
    fn epoch_rows(&self, first: &[u8], end: Option<&[u8]>, reverse: bool) -> Range<'_> {
        self.range(EPOCHS, key::bounds(first, end), reverse)
    }
}

/// All epochs of a group, oldest first.
pub(crate) fn all(rows: &impl EpochRows, group: GroupId) -> Result<Vec<(Epoch, Held)>, VolumeError> {
    let prefix = key::group(group);
    let end = key::after_prefix(&prefix);
    rows.epoch_rows(&prefix, end.as_deref(), false).map(|row| decode(&row?)).collect()
}

/// The newest epoch of a group.
pub(crate) fn newest(rows: &impl EpochRows, group: GroupId) -> Result<Option<Epoch>, VolumeError> {
    let prefix = key::group(group);
    let end = key::after_prefix(&prefix);
    let last = rows.epoch_rows(&prefix, end.as_deref(), true).next();
    Ok(last.map(|row| decode(&row?)).transpose()?.map(|(epoch, _)| epoch))
}

/// The newest epoch before this one that volumes reference.
pub(crate) fn newest_held_before(
    rows: &impl EpochRows,
    location: Location,
) -> Result<Option<Epoch>, VolumeError> {
    for row in older(rows, location) {
        if let (epoch, Held::By(1..)) = row? {
            return Ok(Some(epoch));
        }
    }
    Ok(None)
}

/// Adds a volume's reference to an epoch.
pub(crate) fn hold(txn: &mut Txn<'_>, location: Location) -> Result<(), VolumeError> {
    let holders = match held(txn, location)? {
        Some(Held::By(holders)) => holders,
        Some(Held::Staged) | None => 0,
    };
    put(txn, location, Held::By(holders + 1));
    Ok(())
}

/// Removes a volume's reference to an epoch; true if it was the last.
pub(crate) fn release(txn: &mut Txn<'_>, location: Location) -> Result<bool, VolumeError> {
    let Some(Held::By(holders @ 1..)) = held(txn, location)? else {
        return Err(index_damaged("an epoch that a volume holds is missing"));
    };
    put(txn, location, Held::By(holders - 1));
    Ok(holders == 1)
}

pub(crate) fn held(txn: &Txn<'_>, location: Location) -> Result<Option<Held>, VolumeError> {
    let key = key::epoch(location.group, location.epoch);
    let row = txn.get(EPOCHS, &key)?;
    Ok(row.map(|row| decode(&(key.to_vec().into(), row))).transpose()?.map(|(_, held)| held))
}

pub(crate) fn put(txn: &mut Txn<'_>, location: Location, held: Held) {
    let row = match held {
        Held::By(holders) => holders,
        Held::Staged => STAGED,
    };
    txn.put(EPOCHS, &key::epoch(location.group, location.epoch), row.to_be_bytes().to_vec());
}

/// Epochs before this one, newest first.
fn older<'r>(
    rows: &'r impl EpochRows,
    location: Location,
) -> impl Iterator<Item = Result<(Epoch, Held), VolumeError>> + 'r {
    let (first, end) = (key::group(location.group), key::epoch(location.group, location.epoch));
    rows.epoch_rows(&first, Some(&end), true).map(|row| decode(&row?))
}

fn decode((key, value): &afs_kv::Row) -> Result<(Epoch, Held), VolumeError> {
    let word = value.as_ref().try_into().ok().map(u32::from_be_bytes);
    match (key::epoch_of_row(key), word) {
        (Some(epoch), Some(STAGED)) => Ok((epoch, Held::Staged)),
        (Some(epoch), Some(holders)) => Ok((epoch, Held::By(holders))),
        _ => Err(index_damaged("a row of the table of epochs cannot be decoded")),
    }
}

const STAGED: u32 = u32::MAX;
