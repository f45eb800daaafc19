//! What is known after a change that was decided under a lost lease was made, or was refused.

use afs_wire::dir;
use afs_wire::fs::{Change, ChangeReply, Name, Status};
use afs_wire::ids::Fid;

use super::data::bytes_of;
use super::looks::target;
use super::state::Loss;
use crate::error::{ErrorKind, Result, VenusError};
use crate::leases::Entry;
use crate::venus::Venus;

/// A change was made.
pub(super) fn made(loss: &mut Loss<'_>, entry: &Entry, change: &Change, reply: &ChangeReply) {
    match (change, reply) {
        (Change::CreateFile(small), ChangeReply::CreateFile(made)) => {
            let named = (small.create.dir, &small.create.name);
            made_object(loss, entry, named, made.fid, &made.dir_status);
        }
        (Change::MakeDir(call), ChangeReply::MakeDir(made)) => {
            made_object(loss, entry, (call.dir, &call.name), made.fid, &made.dir_status);
        }
        (Change::Symlink(call), ChangeReply::Symlink(made)) => {
            made_object(loss, entry, (call.dir, &call.name), made.fid, &made.dir_status);
        }
        (Change::Link(call), ChangeReply::Link(linked)) => {
            added(loss, (call.dir, &call.name), call.existing, &linked.dir_status);
        }
        (Change::RemoveFile(call), ChangeReply::RemoveFile(removed)) => {
            taken_away(loss, (call.dir, &call.name), &removed.dir_status);
        }
        (Change::RemoveDir(call), ChangeReply::RemoveDir(removed)) => {
            taken_away(loss, (call.dir, &call.name), &removed.dir_status);
        }
        (Change::Rename(call), ChangeReply::Rename(renamed)) => {
            let (old, new) = ((call.old_dir, &call.old_name), (call.new_dir, &call.new_name));
            moved(loss, old, new, &renamed.old_dir_status);
            entry.moved().into_iter().for_each(|moved| loss.lease.fates(|fates| fates.was_renamed(moved)));
        }
        _ => {}
    }
}

fn made_object(loss: &mut Loss<'_>, entry: &Entry, named: (Fid, &Name), fid: Fid, dir_status: &Status) {
    added(loss, named, fid, dir_status);
    loss.lease.fates(|fates| fates.replace(entry.object, fid));
}

/// Adds a name to the copy of a directory, whose status after the change that is.
fn added(loss: &mut Loss<'_>, (dir, name): (Fid, &Name), fid: Fid, dir_status: &Status) {
    let version = dir_status.data_version;
    loss.looks.changed(dir, version, |blob| dir::insert(blob, name, target(fid)).is_ok());
}

fn taken_away(loss: &mut Loss<'_>, (dir, name): (Fid, &Name), dir_status: &Status) {
    loss.looks.changed(dir, dir_status.data_version, |blob| dir::remove(blob, name).is_ok());
}

/// Moves a name in the copy of a directory. Of two directories no copy is kept.
fn moved(loss: &mut Loss<'_>, old: (Fid, &Name), new: (Fid, &Name), old_dir_status: &Status) {
    if old.0 != new.0 {
        [old.0, new.0].into_iter().for_each(|dir| loss.looks.forget(dir));
        return;
    }
    loss.looks.changed(old.0, old_dir_status.data_version, |blob| {
        let Ok(moved) = dir::remove(blob, old.1) else { return false };
        let _ = dir::remove(blob, new.1);
        dir::insert(blob, new.1, moved).is_ok()
    });
}

impl Venus {
    /// A change was refused: what was decided after it may depend on it.
    ///
    /// # Errors
    /// The refusal, unless there is nothing to be given up.
    pub(super) async fn refused(
        &self,
        loss: &mut Loss<'_>,
        entry: &Entry,
        change: &Change,
        error: VenusError,
    ) -> Result<()> {
        let key = entry.vnode.key;
        match change {
            // By a list of the lease of which the server has no record any more: nobody else makes an object with the lent fid.
            change if change.makes_object() && error.kind == ErrorKind::Exists => {
                return if self.status_of(loss.lease, key.fid).await?.is_some() {
                    Ok(())
                } else {
                    Err(error)
                };
            }
            Change::Rename(call) => {
                let old = (call.old_dir, call.old_name.clone());
                entry
                    .moved()
                    .into_iter()
                    .for_each(|moved| loss.lease.fates(|fates| fates.keeps(moved, old.clone())));
            }
            Change::Link(call) => {
                let named = (call.dir, call.name.clone());
                if error.kind == ErrorKind::Exists
                    && self.object_of(loss, &named).await? == Some(call.existing)
                {
                    return Ok(());
                }
                loss.lease.fates(|fates| fates.note_not_linked(key));
            }
            Change::Store(call) => {
                loss.lease.fates(|fates| fates.note_unstored(key));
                let expected = match entry.decided.change() {
                    Some(Change::Store(decided)) => decided.expected,
                    _ => call.expected,
                };
                let data = (bytes_of(&call.data), call.status.mod_time);
                loss.unstored.push(self.unstored(entry, call.fid, expected, data));
                return Ok(());
            }
            _ => {}
        }
        Err(error)
    }
}
