//! Lent vnode numbers that outlived their loan: of a group, and of a store that is opened.

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_kv::Txn;
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};

use crate::error::VolumeError;
use crate::group::Group;
use crate::ids::GroupId;
use crate::key::{self, LENT};
use crate::store::Store;
use crate::tx::VolumeTx;

/// Rows of one transaction.
const ROWS_PER_STEP: usize = 4096;

/// The uniquifier that was lent with a number.
pub(crate) fn unique(row: &[u8]) -> Option<Uniquifier> {
    row.first_chunk().map(|unique| Uniquifier(u32::from_be_bytes(*unique)))
}

/// Ends the loans of a group. The numbers are not used again in it.
pub(crate) fn end_all(txn: &mut Txn<'_>, group: GroupId) -> Result<(), VolumeError> {
    let prefix = key::group(group);
    let end = key::after_prefix(&prefix);
    for (key, _) in crate::group::rows::some_rows(txn, LENT, &prefix, end.as_deref(), usize::MAX)? {
        txn.delete(LENT, &key);
    }
    Ok(())
}

/// Takes back every number that is lent: who borrowed them is not known to a store that was opened just now.
pub(crate) async fn take_back_all(store: &Arc<Store>) -> Result<(), VolumeError> {
    loop {
        let rows = store.kv.snapshot();
        let rows: Vec<_> = rows.range(LENT, .., false).take(ROWS_PER_STEP).collect::<Result<_, _>>()?;
        if rows.is_empty() {
            return Ok(());
        }
        let mut groups: BTreeMap<GroupId, Vec<(VnodeId, Uniquifier)>> = BTreeMap::new();
        for (key, row) in &rows {
            if let (Some((group, vnode)), Some(unique)) = (key::from_lent(key), unique(row)) {
                groups.entry(group).or_default().push((vnode, unique));
            }
        }
        let keys: Vec<_> = rows.into_iter().map(|(key, _)| key).collect();
        let at = store.clone();
        let step = store.kv.update(move |txn| {
            groups.into_iter().try_for_each(|(group, numbers)| take_back(txn, &at, group, &numbers))?;
            // Those of a group without a writer, and those that cannot be read.
            keys.iter().for_each(|key| txn.delete(LENT, key));
            Ok::<_, VolumeError>(())
        });
        step.await?;
    }
}

fn take_back(
    txn: &mut Txn<'_>,
    store: &Arc<Store>,
    group: GroupId,
    numbers: &[(VnodeId, Uniquifier)],
) -> Result<(), VolumeError> {
    let Some(volume) = writer(txn, group)? else { return Ok(()) };
    let mut tx = VolumeTx::begin(txn, store, volume)?;
    let fids: Vec<_> = numbers.iter().map(|&(vnode, unique)| Fid { volume, vnode, unique }).collect();
    tx.take_back(&fids)?;
    tx.finish()
}

/// The volume that allocates numbers in a group, if there is one. A group whose row is gone has none.
fn writer(txn: &Txn<'_>, group: GroupId) -> Result<Option<VolumeId>, VolumeError> {
    if txn.get(key::GROUPS, &key::group(group))?.is_none() {
        return Ok(None);
    }
    Ok(Group::load(txn, group)?.writer)
}
