//! Which change is sent in place of one that was decided under a lost lease: of the objects that took the place of those with lent fids, and of the
//! names that the objects have. Others may have used the directory since, and a call takes whatever has the name: so each name is looked at
//! before.

use afs_wire::fs::{self, Change, Name};
use afs_wire::ids::Fid;

use super::state::Loss;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::leases::{Entry, Lease};
use crate::venus::Venus;

impl Venus {
    /// The change to be sent; `None` if there is nothing to do any more: others have removed or replaced the name.
    pub(super) async fn chosen(
        &self,
        loss: &mut Loss<'_>,
        entry: &Entry,
        decided: &Change,
    ) -> Result<Option<Change>> {
        let lease = loss.lease;
        let now = |fid| lease.in_place_of(fid);
        Ok(Some(match decided.clone() {
            Change::CreateFile(fs::CreateSmall { create, data }) => {
                let create = fs::CreateFile { dir: now(create.dir), ..create };
                Change::CreateFile(fs::CreateSmall { create, data })
            }
            Change::MakeDir(call) => Change::MakeDir(fs::MakeDir { dir: now(call.dir), ..call }),
            Change::Symlink(call) => Change::Symlink(fs::Symlink { dir: now(call.dir), ..call }),
            Change::Link(call) => {
                Change::Link(fs::Link { dir: now(call.dir), existing: now(call.existing), ..call })
            }
            // Whatever others have stored meanwhile.
            Change::Store(call) => {
                Change::Store(fs::StoreSmall { fid: now(call.fid), expected: fs::ANY_VERSION, ..call })
            }
            Change::StoreStatus(call) => Change::StoreStatus(fs::StoreStatus { fid: now(call.fid), ..call }),
            Change::RemoveFile(call) => {
                may_lose_its_name(lease, entry)?;
                let named = self.name_to_remove(loss, entry, (now(call.dir), call.name)).await?;
                return Ok(named.map(|(dir, name)| Change::RemoveFile(fs::RemoveFile { dir, name })));
            }
            Change::RemoveDir(call) => {
                let named = self.name_to_remove(loss, entry, (now(call.dir), call.name)).await?;
                return Ok(named.map(|(dir, name)| Change::RemoveDir(fs::RemoveDir { dir, name })));
            }
            Change::Rename(call) => {
                let Some(moved) = entry.moved() else { return Ok(None) };
                let (old, new_dir) = ((now(call.old_dir), call.old_name), now(call.new_dir));
                let old = self.name_of_object(loss, moved, old).await?;
                return Ok(old.map(|(old_dir, old_name)| {
                    Change::Rename(fs::Rename { old_dir, old_name, new_dir, new_name: call.new_name })
                }));
            }
        }))
    }

    /// The name of the object of which the removal was decided.
    async fn name_to_remove(
        &self,
        loss: &mut Loss<'_>,
        entry: &Entry,
        decided: (Fid, Name),
    ) -> Result<Option<(Fid, Name)>> {
        match entry.unlinked {
            Some(object) => self.name_of_object(loss, object, decided).await,
            None => Ok(None),
        }
    }
}

/// A file that did not get the name by which it was to be kept keeps this one.
fn may_lose_its_name(lease: &Lease, entry: &Entry) -> Result<()> {
    let was_not_linked = |key: &Key| lease.fates(|fates| fates.was_not_linked(*key));
    match entry.unlinked.filter(was_not_linked) {
        Some(kept) => Err(VenusError::new(ErrorKind::Exists, "Link").of(kept.fid)),
        None => Ok(()),
    }
}

/// A file whose data was not taken keeps the names that it has: the new one may be that of a file with data.
pub(super) fn has_its_data(lease: &Lease, entry: &Entry, change: &Change) -> Result<()> {
    if !matches!(change, Change::Rename(_) | Change::Link(_)) {
        return Ok(());
    }
    let is_unstored = |key: Key| lease.fates(|fates| fates.is_unstored(key));
    let mut kept = entry.concerns.iter().filter(|key| entry.unlinked != Some(**key));
    match kept.find(|key| is_unstored(**key)) {
        Some(file) => Err(VenusError::new(ErrorKind::NoSpace, "StoreData").of(file.fid)),
        None => Ok(()),
    }
}
