//! Background deletion of contents that have lost their vnode.

use afs_kv::Txn;
use bytes::Bytes;

use super::epochs;
use super::rows::{ROWS_PER_STEP, forget_row};
use crate::chunks;
use crate::codec::Fields;
use crate::doomed_row;
use crate::error::VolumeError;
use crate::extent::Slot;
use crate::ids::{ContentId, Epoch, GroupId, SlotIndex};
use crate::key::{self, DEADROWS, DOOMED, PAGES, RowId, SLOTS};
use crate::location::Location;
use crate::rows::index_damaged;
use crate::store::VolumeStore;

/// The newest row of a slot or page.
struct Newest {
    index: SlotIndex,
    written: Epoch,
    row: Bytes,
}

impl VolumeStore {
    /// Deletes some rows of a doomed content; false if there is none.
    pub(crate) async fn reclaim_content(&self) -> Result<bool, VolumeError> {
        if self.store.kv.snapshot().range(DOOMED, .., false).next().transpose()?.is_none() {
            return Ok(false);
        }
        let store = self.store.clone();
        let step = self.store.kv.update(move |txn| {
            let Some((key, row)) = txn.range(DOOMED, .., false).next().transpose()? else {
                return Ok(());
            };
            step(txn, &key, &row)?;
            txn.before_visible(move |_| store.work.notify_one());
            Ok::<_, VolumeError>(())
        });
        step.await?;
        Ok(true)
    }
}

fn step(txn: &mut Txn<'_>, key: &Bytes, row: &Bytes) -> Result<(), VolumeError> {
    let (group, content) = from_key(key).ok_or_else(bad_key)?;
    let (epoch, next) = doomed_row::decode(row)?;
    let keeper = epochs::newest_held_before(txn, Location { group, epoch })?;
    let mut rest = None;
    for table in [SLOTS, PAGES] {
        let (rows, more) = newest_rows(txn, table, key, next)?;
        for newest in rows {
            reclaim(txn, table, (group, content), &newest, keeper)?;
        }
        rest = rest.or(more);
    }
    match rest {
        Some(next) => txn.put(DOOMED, key, doomed_row::encode(epoch, next)),
        None => txn.delete(DOOMED, key),
    }
    Ok(())
}

/// The newest rows of some slots from `next` on, and where to continue. Older rows of a slot are on
/// deadlists.
fn newest_rows(
    txn: &Txn<'_>,
    table: &str,
    content: &[u8],
    next: SlotIndex,
) -> Result<(Vec<Newest>, Option<SlotIndex>), VolumeError> {
    let mut first = content.to_vec();
    first.extend_from_slice(&next.0.to_be_bytes());
    let end = key::after_prefix(content);
    let mut found: Vec<Newest> = Vec::new();
    for row in txn.range(table, key::bounds(&first, end.as_deref()), false) {
        let (key, row) = row?;
        let index = key.get(12..16).and_then(|index| index.try_into().ok()).map(u32::from_be_bytes);
        let index = SlotIndex(index.ok_or_else(bad_key)?);
        let written = key::epoch_of_row(&key).ok_or_else(bad_key)?;
        let full = found.len() == ROWS_PER_STEP;
        match found.last_mut() {
            Some(last) if last.index == index => *last = Newest { index, written, row },
            _ if full => return Ok((found, Some(index))),
            _ => found.push(Newest { index, written, row }),
        }
    }
    Ok((found, None))
}

/// Releases one slot or page: a clone that references it keeps it.
fn reclaim(
    txn: &mut Txn<'_>,
    table: &str,
    (group, content): (GroupId, ContentId),
    newest: &Newest,
    keeper: Option<Epoch>,
) -> Result<(), VolumeError> {
    let is_slot = table == SLOTS;
    let id = if is_slot {
        RowId::Slot(group, content, newest.index)
    } else {
        RowId::Page(group, content, newest.index)
    };
    if is_slot && !newest.row.is_empty() {
        let slot = Slot::decode(newest.row.clone());
        for owned in slot.map_err(|_| index_damaged("a slot cannot be decoded"))?.chunks() {
            chunks::release(txn, group, keeper, owned)?;
        }
    }
    match keeper.filter(|keeper| newest.written <= *keeper) {
        Some(keeper) => txn.put(DEADROWS, &key::dead_row(keeper, id, newest.written), Vec::new()),
        None => forget_row(txn, id, newest.written),
    }
    Ok(())
}

pub(super) fn from_key(key: &Bytes) -> Option<(GroupId, ContentId)> {
    let mut fields = Fields::new(key.clone());
    Some((GroupId(fields.u32().ok()?), ContentId(fields.u64().ok()?)))
}

pub(super) fn bad_key() -> VolumeError {
    index_damaged("a key of a content cannot be decoded")
}
