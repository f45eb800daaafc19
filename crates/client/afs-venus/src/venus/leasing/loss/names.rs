//! Removals, renames and links that were decided under a lost lease, made by single calls: only of the objects of which they were decided.
//!
//! Others may have used the directory since, and a call takes whatever has the name. So each name is looked at before, also before a call
//! is repeated to which no reply came.

use afs_wire::dir;
use afs_wire::fs::{self, Name};
use afs_wire::ids::Fid;
use afs_wire::rpc::Request;

use super::looking::Named;
use super::looks::target;
use super::state::Loss;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::leases::{Entry, Lease};
use crate::venus::Venus;
use crate::venus::leasing::may_be_sent_again;

/// Calls of one change to which no reply comes, before it is left for later.
const ATTEMPTS_MAX: u32 = 8;

impl Venus {
    /// Removes a name, if it is that of the object of which the removal was decided. Otherwise it was removed by the list whose reply was lost, or
    /// others have removed or replaced it.
    pub(super) async fn remove_alone<R>(
        &self,
        loss: &mut Loss<'_>,
        entry: &Entry,
        decided: Named,
        request: impl Fn(Fid, Name) -> R,
    ) -> Result<()>
    where
        R: Request<Reply = fs::RemoveReply> + Clone,
    {
        let Some(object) = entry.unlinked else { return Ok(()) };
        let mut unknown = Ok(());
        for _ in 0..ATTEMPTS_MAX {
            let Some((dir, name)) = self.name_of_object(loss, object, decided.clone()).await? else {
                return Ok(());
            };
            match self.made_once(loss, &[dir], request(dir, name.clone())).await? {
                Ok(reply) => {
                    let version = reply.dir_status.data_version;
                    loss.looks.changed(dir, version, |blob| dir::remove(blob, &name).is_ok());
                    return Ok(());
                }
                Err(error) => unknown = Err(error),
            }
        }
        unknown
    }

    /// Renames an object, unless it has the new name already, or has lost the old one by others. What cannot be renamed keeps its name.
    pub(super) async fn rename_alone(
        &self,
        loss: &mut Loss<'_>,
        entry: &Entry,
        call: &fs::Rename,
    ) -> Result<()> {
        let Some(moved) = entry.moved() else { return Ok(()) };
        let old = (loss.lease.in_place_of(call.old_dir), call.old_name.clone());
        let new = (loss.lease.in_place_of(call.new_dir), call.new_name.clone());
        let mut unknown = Ok(());
        for _ in 0..ATTEMPTS_MAX {
            let Some(old) = self.name_of_object(loss, moved, old.clone()).await? else { return Ok(()) };
            let made = self.rename_named(loss, entry, &old, &new).await;
            match made {
                Ok(Ok(())) => {
                    loss.lease.fates(|fates| fates.was_renamed(moved));
                    return Ok(());
                }
                Ok(Err(error)) => unknown = Err(error),
                Err(error) => {
                    if !may_be_sent_again(&error) {
                        loss.lease.fates(|fates| fates.keeps(moved, old));
                    }
                    return Err(error);
                }
            }
        }
        unknown
    }

    /// One attempt, see [`Venus::made_once`].
    async fn rename_named(
        &self,
        loss: &mut Loss<'_>,
        entry: &Entry,
        old: &Named,
        new: &Named,
    ) -> Result<Result<()>> {
        has_its_data(loss.lease, entry)?;
        self.may_replace(loss, entry, new).await?;
        let (old_dir, old_name, new_dir, new_name) = (old.0, old.1.clone(), new.0, new.1.clone());
        let call = fs::Rename { old_dir, old_name, new_dir, new_name };
        let made = self.made_once(loss, &[old.0, new.0], call).await?;
        Ok(made.map(|reply| note_renamed(loss, old, new, &reply)))
    }

    /// What a list that may have been made has put under a name, others may have replaced since. A rename that was surely not made replaces
    /// what it finds, as any rename.
    async fn may_replace(&self, loss: &mut Loss<'_>, entry: &Entry, new: &Named) -> Result<()> {
        if !loss.lease.journal(|journal| journal.is_first_doubted()) {
            return Ok(());
        }
        let found = self.object_of(loss, new).await?;
        let decided = [entry.unlinked, entry.moved()].into_iter().flatten();
        let mut decided = decided.map(|key| loss.lease.in_place_of(key.fid));
        match found.is_none_or(|found| decided.any(|fid| fid == found)) {
            true => Ok(()),
            false => Err(VenusError::new(ErrorKind::Exists, "Rename").of(new.0)),
        }
    }

    /// Gives a file another name. Where that is its name already, the list whose reply was lost has made it. If it cannot be made, the file
    /// keeps the name that a later change removes.
    pub(super) async fn link_alone(&self, loss: &mut Loss<'_>, entry: &Entry, call: &fs::Link) -> Result<()> {
        let (dir, existing) = (loss.lease.in_place_of(call.dir), loss.lease.in_place_of(call.existing));
        let call = fs::Link { dir, existing, ..call.clone() };
        let named = (dir, call.name.clone());
        let made = match has_its_data(loss.lease, entry) {
            Ok(()) => self.made_alone(loss, &[dir], call).await,
            Err(error) => Err(error),
        };
        let error = match made {
            Ok(linked) => {
                note_added(loss, &named, existing, &linked.dir_status);
                return Ok(());
            }
            Err(error) if may_be_sent_again(&error) => return Err(error),
            Err(error) => error,
        };
        if error.kind == ErrorKind::Exists && self.object_of(loss, &named).await? == Some(existing) {
            return Ok(());
        }
        loss.lease.fates(|fates| fates.note_not_linked(entry.vnode.key));
        Err(error)
    }

    /// Makes a call that is not repeated before the names were looked at again. The inner error is that of one which may have been made, or
    /// whose name was gone.
    async fn made_once<R: Request + Clone>(
        &self,
        loss: &mut Loss<'_>,
        dirs: &[Fid],
        call: R,
    ) -> Result<Result<R::Reply>>
    where
        R::Reply: Send,
    {
        match self.without_retry().made_alone(loss, dirs, call).await {
            Err(error) if may_be_sent_again(&error) || error.kind == ErrorKind::NotFound => Ok(Err(error)),
            made => made.map(Ok),
        }
    }
}

/// Adds a name to the copy of a directory, whose status after the change that is.
pub(super) fn note_added(loss: &mut Loss<'_>, (dir, name): &Named, fid: Fid, dir_status: &fs::Status) {
    let version = dir_status.data_version;
    loss.looks.changed(*dir, version, |blob| dir::insert(blob, name, target(fid)).is_ok());
}

/// Moves a name in the copy of a directory. Of two directories no copy is kept.
fn note_renamed(loss: &mut Loss<'_>, old: &Named, new: &Named, reply: &fs::RenameReply) {
    if old.0 != new.0 {
        [old.0, new.0].into_iter().for_each(|dir| loss.looks.forget(dir));
        return;
    }
    loss.looks.changed(old.0, reply.old_dir_status.data_version, |blob| {
        let Ok(moved) = dir::remove(blob, &old.1) else { return false };
        let _ = dir::remove(blob, &new.1);
        dir::insert(blob, &new.1, moved).is_ok()
    });
}

/// A file whose data was not taken keeps the names that it has: the new one may be that of a file with data.
fn has_its_data(lease: &Lease, entry: &Entry) -> Result<()> {
    let is_unstored = |key: Key| lease.fates(|fates| fates.is_unstored(key));
    let mut kept = entry.concerns.iter().filter(|key| entry.unlinked != Some(**key));
    match kept.find(|key| is_unstored(**key)) {
        Some(file) => Err(VenusError::new(ErrorKind::NoSpace, "StoreData").of(file.fid)),
        None => Ok(()),
    }
}
