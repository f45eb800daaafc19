//! Start of a restore: allocates its epoch and reserves the volume.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use afs_kv::Txn;
use afs_wire::ids::VolumeId;

use super::Restore;
use super::put::Batch;
use super::vnode_set::VnodeSet;
use crate::error::VolumeError;
use crate::group::{self, Group, Members, epochs};
use crate::header::{VnodeNumbers, VolumeHeader};
use crate::ids::GroupId;
use crate::key::{self, WORK};
use crate::location::Location;
use crate::store::Store;
use crate::volume::Volume;

/// Content ids left to the present state, which may continue to use them if the restore is abandoned.
const CONTENTS_LEFT: u64 = 1 << 32;

/// An id that no group has.
const NO_GROUP: GroupId = GroupId(0);

/// Result of an attempt to begin.
enum Begun {
    Staged(Box<VolumeHeader>, Location),
    /// Leftovers of an earlier restore must be deleted first.
    Leftovers(GroupId),
}

/// Excludes other changes of a volume, until it is dropped.
pub(super) struct Reservation {
    store: Arc<Store>,
    volume: VolumeId,
}

impl Reservation {
    fn take(store: &Arc<Store>, volume: VolumeId) -> Result<Self, VolumeError> {
        match store.restores.lock().entry(volume) {
            Entry::Occupied(_) => Err(VolumeError::Busy),
            Entry::Vacant(entry) => {
                entry.insert(NO_GROUP);
                Ok(Self { store: store.clone(), volume })
            }
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.store.restores.lock().remove(&self.volume);
        // An epoch that is not committed is to be deleted.
        self.store.work.notify_one();
    }
}

impl Volume {
    /// Starts to rewrite the volume, of whatever kind: `full` if nothing of its present state stays. The
    /// present state is served until [`Restore::commit`]; changes by clients fail with `Busy` meanwhile.
    ///
    /// # Errors
    /// `Busy` if another restore of the volume is in progress.
    pub async fn begin_restore(self: &Arc<Self>, full: bool) -> Result<Restore, VolumeError> {
        let store = self.store().clone();
        let reservation = Reservation::take(&store, self.id())?;
        loop {
            let (at, id) = (store.clone(), self.id());
            match store.kv.update(move |txn| begin(txn, &at, id, full)).await? {
                Begun::Leftovers(group) => store.delete_leftovers_step(group).await?,
                Begun::Staged(staged, base) => {
                    let (volume, staged) = (self.clone(), *staged);
                    return Ok(Restore {
                        volume,
                        reservation,
                        staged,
                        base,
                        full,
                        seen: VnodeSet::default(),
                        batch: Batch::default(),
                    });
                }
            }
        }
    }
}

fn begin(txn: &mut Txn<'_>, store: &Arc<Store>, id: VolumeId, full: bool) -> Result<Begun, VolumeError> {
    let header = Members::new(txn, store).header(id)?;
    let base = Location::of(&header);
    let newer = epochs::all(txn, base.group)?.into_iter().filter(|(epoch, _)| *epoch > base.epoch);
    let newer: Vec<_> = newer.map(|(_, held)| held).collect();
    let held = newer.iter().any(|held| matches!(held, epochs::Held::By(1..)));
    if !full && !newer.is_empty() && !held && !store.is_staging(base.group) {
        return Ok(Begun::Leftovers(base.group));
    }
    let staged = if full || !newer.is_empty() { apart(txn, header)? } else { behind(txn, header)? };
    let location = Location::of(&staged);
    epochs::put(txn, location, epochs::Held::Staged);
    txn.put(WORK, &key::group(location.group), Vec::new());
    // From now on no other task changes the volume or deletes the epoch.
    store.restores.lock().insert(id, location.group);
    Ok(Begun::Staged(Box::new(staged), base))
}

/// Stages in a group of its own.
fn apart(txn: &mut Txn<'_>, header: VolumeHeader) -> Result<VolumeHeader, VolumeError> {
    let location = group::make(txn, Some(header.id).filter(|_| header.is_writable()))?;
    Ok(VolumeHeader {
        group: location.group,
        epoch: location.epoch,
        newest_clone: None,
        blocks_used: 0,
        file_count: 0,
        next_content: 1,
        loose_numbers: false,
        files: VnodeNumbers { next: 2, freed: 0 },
        directories: VnodeNumbers { next: 3, freed: 0 },
        ..header
    })
}

/// Stages in the epoch after the volume's own.
fn behind(txn: &mut Txn<'_>, header: VolumeHeader) -> Result<VolumeHeader, VolumeError> {
    let mut group = Group::load(txn, header.group)?;
    let epoch = group.take_epoch()?;
    group.save(txn, header.group);
    let next_content = header.next_content.saturating_add(CONTENTS_LEFT);
    Ok(VolumeHeader { epoch, newest_clone: Some(header.epoch), next_content, loose_numbers: true, ..header })
}
