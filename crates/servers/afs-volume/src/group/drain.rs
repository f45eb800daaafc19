//! Deletes a middle epoch; entries that an older epoch still references move to that epoch's deadlist.

use afs_kv::Txn;

use super::rows::{ROWS_PER_STEP, bad_list, delete_row, some_rows};
use crate::chunks;
use crate::error::VolumeError;
use crate::extent::OwnedChunk;
use crate::ids::Epoch;
use crate::key::{self, CHANGES, DEADLISTS, DEADROWS};
use crate::location::Location;

/// Processes some of an epoch's deadlist; true when the epoch is no longer needed.
pub(super) fn step(
    txn: &mut Txn<'_>,
    location: Location,
    older: Option<Epoch>,
    newer: Epoch,
) -> Result<bool, VolumeError> {
    let done = drain_rows(txn, location, older)?
        && drain_chunks(txn, location, older)?
        // Changes since an epoch that no volume references are never asked for.
        && (older.is_some() || forget_changes(txn, Location { epoch: newer, ..location })?);
    Ok(done)
}

fn drain_rows(txn: &mut Txn<'_>, location: Location, older: Option<Epoch>) -> Result<bool, VolumeError> {
    let first = key::epoch(location.group, location.epoch);
    let end = key::after_prefix(&first);
    let rows = some_rows(txn, DEADROWS, &first, end.as_deref(), ROWS_PER_STEP)?;
    for (key, _) in &rows {
        let (id, written) = key::from_dead_row(key).ok_or_else(bad_list)?;
        txn.delete(DEADROWS, key);
        match older.filter(|older| written <= *older) {
            Some(older) => txn.put(DEADROWS, &key::dead_row(older, id, written), Vec::new()),
            None => delete_row(txn, id, written)?,
        }
    }
    Ok(rows.is_empty())
}

fn drain_chunks(txn: &mut Txn<'_>, location: Location, older: Option<Epoch>) -> Result<bool, VolumeError> {
    let first = key::epoch(location.group, location.epoch);
    let end = key::after_prefix(&first);
    let rows = some_rows(txn, DEADLISTS, &first, end.as_deref(), ROWS_PER_STEP)?;
    for (key, row) in &rows {
        let owned = OwnedChunk::decode_row(row.clone()).map_err(|_| bad_list())?;
        txn.delete(DEADLISTS, key);
        match older.filter(|older| owned.birth <= *older) {
            Some(older) => {
                txn.put(DEADLISTS, &key::deadlist(location.group, older, owned.at), owned.to_row());
            }
            None => chunks::free_once(txn, owned.at)?,
        }
    }
    Ok(rows.is_empty())
}

/// Deletes change records of the oldest remaining epoch and before.
fn forget_changes(txn: &mut Txn<'_>, oldest: Location) -> Result<bool, VolumeError> {
    let first = key::group(oldest.group);
    let end = key::after_prefix(&key::epoch(oldest.group, oldest.epoch));
    let rows = some_rows(txn, CHANGES, &first, end.as_deref(), ROWS_PER_STEP)?;
    for (key, _) in &rows {
        txn.delete(CHANGES, key);
    }
    Ok(rows.is_empty())
}
