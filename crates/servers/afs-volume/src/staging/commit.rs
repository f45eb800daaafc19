//! Commit of a restore: makes the staged state the volume's.

use std::sync::Arc;

use afs_wire::ids::{UnixSeconds, ViceId, VolumeId, VolumeKind, VolumeName};

use super::Restore;
use crate::error::VolumeError;
use crate::group::{Group, Members, epochs};
use crate::header::VolumeHeader;
use crate::lent;
use crate::location::Location;

/// The fields of the header that a restore sets; `None` leaves a field unchanged (`docs/protocol/dump.md` "2.
/// Tags", volume header).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoredHeader {
    /// Its name.
    pub name: Option<VolumeName>,
    /// Its kind. A volume that becomes read-write becomes its group's writer.
    pub kind: Option<VolumeKind>,
    /// The read-write volume of its group.
    pub parent: Option<VolumeId>,
    /// The group's read-only volume.
    pub read_only: Option<VolumeId>,
    /// The next uniquifier. The volume's own stays if it is higher, as does one higher than that of any
    /// vnode.
    pub next_unique: Option<u32>,
    /// Quota in KiB.
    pub max_quota: Option<u32>,
    /// Stored and returned, never consulted.
    pub min_quota: Option<u32>,
    /// The owner of its root directory.
    pub owner: Option<ViceId>,
    /// Creation time of this instance of the volume.
    pub creation_date: Option<UnixSeconds>,
    /// Creation time of its last clone. The volume's own stays if it is later.
    pub clone_date: Option<UnixSeconds>,
    /// Time of the last use.
    pub access_date: Option<UnixSeconds>,
    /// Time of the last change.
    pub update_date: Option<UnixSeconds>,
    /// Expiration time.
    pub expiration_date: Option<UnixSeconds>,
    /// Time of the last backup.
    pub backup_date: Option<UnixSeconds>,
    /// Whether it is in service.
    pub online: Option<bool>,
    /// Shown to users while it is offline.
    pub offline_message: Option<String>,
    /// Uses of the day, its start, and the uses of the seven days before.
    pub uses: Option<(u32, UnixSeconds, [u32; 7])>,
}

impl Restore {
    /// Makes the vnodes that were written and kept the volume's state, in one transaction: other vnodes are
    /// deleted, usage and counts are recomputed. Readers of the old state end with `Busy` where they would
    /// meet the new one; data that only the old state referenced is deleted in the background.
    ///
    /// # Errors
    /// `Damaged` if a directory is inconsistent or names a missing vnode, or there is no root directory;
    /// `NoVolume` if the volume was deleted meanwhile. After an error the volume is unchanged.
    pub async fn commit(mut self, header: RestoredHeader) -> Result<(), VolumeError> {
        self.flush().await?;
        self.prune().await?;
        self.check_directories().await?;
        let (store, staged, base) = (self.store().clone(), self.staged.clone(), self.base);
        let committed = self.store().kv.update(move |txn| {
            let mut members = Members::new(txn, &store);
            commit(&mut members, staged, base, header)?;
            members.finish();
            let at = Arc::clone(&store);
            txn.before_visible(move |_| at.work.notify_one());
            Ok::<_, VolumeError>(())
        });
        Ok(committed.await?)
    }
}

fn commit(
    members: &mut Members<'_, '_>,
    staged: VolumeHeader,
    base: Location,
    restored: RestoredHeader,
) -> Result<(), VolumeError> {
    let before = members.header(staged.id)?;
    if Location::of(&before) != base {
        return Err(VolumeError::Busy);
    }
    let location = Location::of(&staged);
    epochs::put(members.txn, location, epochs::Held::By(1));
    // Whoever borrowed numbers did so for the content that is replaced.
    lent::end_all(members.txn, before.group)?;
    members.put(restored.apply(before.clone(), staged));
    members.leave(&before)?;
    let mut header = members.header(before.id)?;
    let mut group = Group::load(members.txn, location.group)?;
    if header.is_writable() && group.writer.is_some_and(|writer| writer != header.id) {
        return Err(VolumeError::VolumeExists);
    }
    group.writer = Some(header.id).filter(|_| header.is_writable());
    group.save(members.txn, location.group);
    header.newest_clone = epochs::newest_held_before(members.txn, location)?;
    members.put(header);
    Ok(())
}

impl RestoredHeader {
    /// The volume's present header, with what the restore wrote and sets.
    fn apply(self, before: VolumeHeader, staged: VolumeHeader) -> VolumeHeader {
        let given = self.next_unique.unwrap_or(0);
        let next_unique = before.next_unique.max(staged.next_unique).max(given);
        let (day_use, day_use_date, week_use) =
            self.uses.unwrap_or((before.day_use, before.day_use_date, before.week_use));
        VolumeHeader {
            name: self.name.unwrap_or(before.name),
            kind: self.kind.unwrap_or(before.kind),
            parent: self.parent.unwrap_or(before.parent),
            read_only: self.read_only.unwrap_or(before.read_only),
            max_quota: self.max_quota.unwrap_or(before.max_quota),
            min_quota: self.min_quota.unwrap_or(before.min_quota),
            owner: self.owner.unwrap_or(before.owner),
            creation_date: self.creation_date.unwrap_or(before.creation_date),
            clone_date: before.clone_date.max(self.clone_date.unwrap_or_default()),
            access_date: self.access_date.unwrap_or(before.access_date),
            update_date: self.update_date.unwrap_or(before.update_date),
            expiration_date: self.expiration_date.unwrap_or(before.expiration_date),
            backup_date: self.backup_date.unwrap_or(before.backup_date),
            online: self.online.unwrap_or(before.online),
            offline_message: self.offline_message.unwrap_or(before.offline_message),
            day_use,
            day_use_date,
            week_use,
            blocks_used: staged.blocks_used,
            file_count: staged.file_count,
            group: staged.group,
            epoch: staged.epoch,
            loose_numbers: staged.loose_numbers,
            next_unique,
            next_content: staged.next_content,
            files: staged.files,
            directories: staged.directories,
            ..before
        }
    }
}
