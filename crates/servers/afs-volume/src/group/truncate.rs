//! Deletes the newest states of a group (a deleted read-write volume, the newest clone where there is none, an
//! abandoned restore). The newest epoch that is referenced is the newest state afterwards.

use afs_kv::Txn;

use super::Group;
use super::rows::{ROWS_PER_STEP, bad_list, forget_row, free_chunks, from_epoch, some_rows};
use crate::error::VolumeError;
use crate::extent::OwnedChunk;
use crate::ids::Epoch;
use crate::key::{self, CHANGES, DEADLISTS, DEADROWS, DOOMED, FREE, LENT, RowId};
use crate::location::Location;
use crate::{chunks, doomed_row};

/// Deletes some of what was written after an epoch; true when nothing is left.
pub(super) fn step(txn: &mut Txn<'_>, to: Location) -> Result<bool, VolumeError> {
    let done = forget_doomed(txn, to)?
        && delete_changes(txn, to)?
        && revive_rows(txn, to)?
        && revive_chunks(txn, to)?
        && forget_free_numbers(txn, to)?;
    Ok(done)
}

/// Contents that lost their vnode since are live again.
fn forget_doomed(txn: &mut Txn<'_>, to: Location) -> Result<bool, VolumeError> {
    let prefix = key::group(to.group);
    let end = key::after_prefix(&prefix);
    for (key, row) in some_rows(txn, DOOMED, &prefix, end.as_deref(), usize::MAX)? {
        if doomed_row::decode(&row)?.0 > to.epoch {
            txn.delete(DOOMED, &key);
        }
    }
    Ok(true)
}

/// Deletes rows written since, and the chunks born with them.
fn delete_changes(txn: &mut Txn<'_>, to: Location) -> Result<bool, VolumeError> {
    let (first, end) = from_epoch(to.group, Epoch(to.epoch.0.saturating_add(1)));
    let changes = some_rows(txn, CHANGES, &first, end.as_deref(), ROWS_PER_STEP)?;
    for (key, _) in &changes {
        let (id, written): (RowId, Epoch) = key::from_change(key).ok_or_else(bad_list)?;
        if let Some(row) = txn.get(id.table(), &id.key(written))? {
            free_chunks(txn, id.table(), &row, to.epoch)?;
        }
        forget_row(txn, id, written);
    }
    Ok(changes.is_empty())
}

/// Entries that the epoch has and newer states had not are no longer dead.
fn revive_rows(txn: &mut Txn<'_>, to: Location) -> Result<bool, VolumeError> {
    let (first, end) = from_epoch(to.group, to.epoch);
    let rows = some_rows(txn, DEADROWS, &first, end.as_deref(), ROWS_PER_STEP)?;
    for (key, _) in &rows {
        txn.delete(DEADROWS, key);
    }
    Ok(rows.is_empty())
}

fn revive_chunks(txn: &mut Txn<'_>, to: Location) -> Result<bool, VolumeError> {
    let (first, end) = from_epoch(to.group, to.epoch);
    let rows = some_rows(txn, DEADLISTS, &first, end.as_deref(), ROWS_PER_STEP)?;
    for (key, row) in &rows {
        let owned = OwnedChunk::decode_row(row.clone()).map_err(|_| bad_list())?;
        if owned.birth > to.epoch {
            chunks::free_once(txn, owned.at)?;
        }
        txn.delete(DEADLISTS, key);
    }
    Ok(rows.is_empty())
}

/// Without a writer no vnode numbers are allocated; the next writer starts without freed and lent ones.
fn forget_free_numbers(txn: &mut Txn<'_>, to: Location) -> Result<bool, VolumeError> {
    if Group::load(txn, to.group)?.writer.is_some() {
        return Ok(true);
    }
    let prefix = key::group(to.group);
    let end = key::after_prefix(&prefix);
    let mut done = true;
    for table in [FREE, LENT] {
        let rows = some_rows(txn, table, &prefix, end.as_deref(), ROWS_PER_STEP)?;
        for (key, _) in &rows {
            txn.delete(table, key);
        }
        done &= rows.is_empty();
    }
    Ok(done)
}
