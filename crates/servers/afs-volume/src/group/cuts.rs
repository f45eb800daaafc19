//! Background deletion of rows that were cut out of files.

use std::sync::Arc;

use afs_kv::Txn;
use afs_wire::ids::{Fid, VnodeId};
use bytes::Bytes;

use super::{Group, doomed};
use crate::cuts::CUTS_MAX;
use crate::error::VolumeError;
use crate::ids::{ContentId, GroupId};
use crate::key::{self, CUTS, GROUPS};
use crate::reads::Reads;
use crate::rows::index_damaged;
use crate::store::{Store, VolumeStore};
use crate::tx::VolumeTx;
use crate::volume::Volume;

impl VolumeStore {
    /// Deletes some rows that were cut out of files; false if nothing can be done now.
    pub(crate) async fn complete_cuts(&self) -> Result<bool, VolumeError> {
        let mut from = Vec::new();
        while let Some((key, row)) = self.next_cut(&from)? {
            let (group, content) = doomed::from_key(&key).ok_or_else(doomed::bad_key)?;
            let vnode = row.as_ref().try_into().map(u32::from_be_bytes);
            let vnode = VnodeId(vnode.map_err(|_| index_damaged("a row of a cut cannot be decoded"))?);
            let store = self.store.clone();
            let step = self.store.kv.update(move |txn| step(txn, &store, (group, content), vnode));
            if step.await? {
                return Ok(true);
            }
            // The volume is being restored: continue with another group.
            let Some(next) = key::after_prefix(&key::group(group)) else { break };
            from = next;
        }
        Ok(false)
    }

    fn next_cut(&self, from: &[u8]) -> Result<Option<(Bytes, Bytes)>, VolumeError> {
        let snapshot = self.store.kv.snapshot();
        let row = snapshot.range(CUTS, key::bounds(from, None), false).next().transpose()?;
        Ok(row)
    }
}

impl Volume {
    /// Completes cuts of a file with so many that the next might be refused.
    pub(crate) async fn make_room_for_cuts(self: &Arc<Self>, fid: Fid) -> Result<(), VolumeError> {
        let find = move |reads: Reads<'_>| reads.vnode(fid.vnode);
        while let Some(record) = self.read(find).await?.filter(|record| record.cuts.len() > CUTS_MAX / 2) {
            self.update(move |tx| tx.complete_cuts(record.vnode, record.content).map(drop)).await?;
        }
        Ok(())
    }
}

/// One step through the read-write volume, like any change of a file: rows that a clone references stay.
fn step(
    txn: &mut Txn<'_>,
    store: &Arc<Store>,
    (group, content): (GroupId, ContentId),
    vnode: VnodeId,
) -> Result<bool, VolumeError> {
    let key = key::content_prefix(group, content);
    let writer = match txn.get(GROUPS, &key::group(group))? {
        Some(_) => Group::load(txn, group)?.writer,
        None => None,
    };
    // If no volume writes to the content any more, its rows are deleted with its clones.
    let done = match writer {
        Some(writer) if store.is_restoring(writer) => return Ok(false),
        Some(writer) => {
            let mut tx = VolumeTx::begin(txn, store, writer)?;
            let done = tx.complete_cuts(vnode, content)?;
            tx.finish()?;
            done
        }
        None => true,
    };
    if done {
        txn.delete(CUTS, &key);
    }
    let store = store.clone();
    txn.before_visible(move |_| store.work.notify_one());
    Ok(true)
}
