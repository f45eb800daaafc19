//! Deletion of single rows that no volume references.

use afs_kv::Txn;

use crate::chunks;
use crate::error::VolumeError;
use crate::extent::Slot;
use crate::ids::{Epoch, GroupId};
use crate::key::{self, CHANGES, RowId, SLOTS};
use crate::rows::index_damaged;

/// Deletes a row, and tombstones that then hide nothing.
pub(super) fn delete_row(txn: &mut Txn<'_>, id: RowId, written: Epoch) -> Result<(), VolumeError> {
    forget_row(txn, id, written);
    loop {
        let (first, last) = (id.key(Epoch(0)), id.key(Epoch(u32::MAX)));
        let oldest = txn.range(id.table(), key::bounds(&first, Some(&last)), false).next().transpose()?;
        match oldest {
            Some((key, row)) if row.is_empty() => {
                let written = key::epoch_of_row(&key);
                forget_row(txn, id, written.ok_or_else(|| index_damaged("the key of a row is too short"))?);
            }
            _ => return Ok(()),
        }
    }
}

/// Deletes a row and its entry in the list of changes.
pub(crate) fn forget_row(txn: &mut Txn<'_>, id: RowId, written: Epoch) {
    txn.delete(id.table(), &id.key(written));
    if written != Epoch::FIRST {
        txn.delete(CHANGES, &key::change(id, written));
    }
}

/// Frees the chunks of a row that were born after an epoch, whichever other rows referenced them.
pub(super) fn free_chunks(
    txn: &mut Txn<'_>,
    table: &str,
    row: &bytes::Bytes,
    after: Epoch,
) -> Result<(), VolumeError> {
    if table != SLOTS || row.is_empty() {
        return Ok(());
    }
    let slot = Slot::decode(row.clone()).map_err(|_| index_damaged("a slot cannot be decoded"))?;
    for owned in slot.chunks() {
        if owned.birth > after {
            chunks::free_once(txn, owned.at)?;
        }
    }
    Ok(())
}

/// Rows of one table with keys in a range, at most `limit`.
pub(crate) fn some_rows(
    txn: &Txn<'_>,
    table: &str,
    first: &[u8],
    end: Option<&[u8]>,
    limit: usize,
) -> Result<Vec<afs_kv::Row>, VolumeError> {
    Ok(txn.range(table, key::bounds(first, end), false).take(limit).collect::<Result<_, _>>()?)
}

/// The range from the first key of an epoch to the end of its group.
pub(super) fn from_epoch(group: GroupId, epoch: Epoch) -> (Vec<u8>, Option<Vec<u8>>) {
    (key::epoch(group, epoch).to_vec(), key::after_prefix(&key::group(group)))
}

/// The error for a bad key of a list.
pub(super) fn bad_list() -> VolumeError {
    index_damaged("a key of a list of rows cannot be decoded")
}

/// Rows that one step examines.
pub(super) const ROWS_PER_STEP: usize = 256;
