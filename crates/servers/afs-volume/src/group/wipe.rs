//! Deletes a whole group.

use afs_kv::Txn;

use super::rows::{ROWS_PER_STEP, bad_list, free_chunks, some_rows};
use crate::chunks;
use crate::error::VolumeError;
use crate::extent::OwnedChunk;
use crate::ids::{Epoch, GroupId};
use crate::key::{
    self, CHANGES, CUTS, DEADLISTS, DEADROWS, DOOMED, EPOCHS, FREE, GROUPS, LENT, PAGES, SLOTS, VNODES, WORK,
};

/// Deletes some of a group's rows and frees their chunks; after the last the group's own row is deleted.
pub(super) fn step(txn: &mut Txn<'_>, group: GroupId) -> Result<(), VolumeError> {
    let prefix = key::group(group);
    let end = key::after_prefix(&prefix);
    let mut budget = ROWS_PER_STEP;
    for table in [VNODES, SLOTS, PAGES, FREE, LENT, DOOMED, CUTS, CHANGES, DEADROWS, DEADLISTS, EPOCHS] {
        let rows = some_rows(txn, table, &prefix, end.as_deref(), budget)?;
        for (key, row) in &rows {
            free_chunks(txn, table, row, Epoch(0))?;
            if table == DEADLISTS {
                let owned = OwnedChunk::decode_row(row.clone()).map_err(|_| bad_list())?;
                chunks::free_once(txn, owned.at)?;
            }
            txn.delete(table, key);
        }
        budget -= rows.len();
        if budget == 0 {
            return Ok(());
        }
    }
    txn.delete(GROUPS, &prefix);
    txn.delete(WORK, &prefix);
    Ok(())
}
