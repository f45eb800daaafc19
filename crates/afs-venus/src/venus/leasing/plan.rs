//! What a change of names in a leased directory does: by the cached copy of the directory, which is complete.

use std::sync::Arc;

use afs_wire::dir::{Blob, PAGE_LEN, PAGES_MAX};
use afs_wire::fs::{self, Change, FileKind, SetStatus};
use afs_wire::ids::Mode;

use crate::key::Key;
use crate::leases::New;
use crate::location::Volume;
use crate::venus::Venus;
use crate::vnode::Vnode;

/// Bytes of a longer directory in which nothing is decided: whether a name still fits is the server's decision.
const DIRECTORY_MAX: usize = (PAGES_MAX as usize - 8) * PAGE_LEN;
/// Bytes of the quota that a new object, and the growth of its directory, take at most, besides its data.
const OBJECT_COST: u64 = 4 << 10;
const NAME_COST: u64 = 2 << 10;
/// Mode bits that every owner may set.
const PLAIN_MODE: u32 = 0o777;

/// A change that can be decided.
pub(super) struct Plan {
    pub new: New,
    /// Of a new object, what it is.
    pub kind: FileKind,
    pub length: u64,
    pub set: SetStatus,
    /// What it concerns, besides a new object.
    pub concerns: Vec<Key>,
    /// How the number of directories in the directory changes.
    pub subdirectories: i32,
    /// Bytes of the quota that it takes at most.
    pub cost: u64,
}

impl Plan {
    fn of_names(concerns: Vec<Key>, cost: u64) -> Plan {
        let (set, length) = (SetStatus::default(), 0);
        Plan { new: New::Nothing, kind: FileKind::Invalid, length, set, concerns, subdirectories: 0, cost }
    }
}

/// The names of a directory.
struct Names<'a> {
    dir: Key,
    blob: &'a Blob,
}

impl Names<'_> {
    /// The object of a name; `None` where the copy is damaged.
    fn find(&self, name: &fs::Name) -> Option<Option<Key>> {
        let found = self.blob.lookup(name.as_bytes()).ok()?;
        Some(found.map(|(vnode, unique)| self.dir.sibling(vnode, unique)))
    }

    fn new_object(&self, name: &fs::Name, kind: FileKind, length: u64, set: SetStatus) -> Option<Plan> {
        let is_mount_point = kind == FileKind::Symlink && set.mode.is_none_or(Mode::marks_mount_point);
        if is_mount_point
            || !is_plain(&set)
            || self.find(name)?.is_some()
            || self.blob.as_bytes().len() > DIRECTORY_MAX
        {
            return None;
        }
        let is_dir = kind == FileKind::Directory;
        let new = if is_dir { New::Directory } else { New::File };
        let cost = OBJECT_COST + length.next_multiple_of(1024);
        let plan = Plan::of_names(vec![self.dir], cost);
        Some(Plan { new, kind, length, set, subdirectories: i32::from(is_dir), ..plan })
    }

    fn removal(&self, name: &fs::Name, of_directory: bool) -> Option<Plan> {
        let target = self.find(name)??;
        let plan = Plan::of_names(vec![self.dir, target], 0);
        (target.fid.is_directory() == of_directory)
            .then_some(Plan { subdirectories: -i32::from(of_directory), ..plan })
    }

    fn rename(&self, change: &fs::Rename) -> Option<Plan> {
        let moved = self.find(&change.old_name)??;
        let replaced = self.find(&change.new_name)?;
        let is_plain =
            |replaced: Key| !replaced.fid.is_directory() && !moved.fid.is_directory() && replaced != moved;
        let is_in_place = change.old_dir == change.new_dir && replaced.is_none_or(is_plain);
        let concerns = [self.dir, moved].into_iter().chain(replaced).collect();
        is_in_place.then(|| Plan::of_names(concerns, NAME_COST))
    }
}

/// Whether any owner of an object may set this.
pub(super) fn is_plain(set: &SetStatus) -> bool {
    set.owner.is_none() && set.group.is_none() && set.mode.is_none_or(|mode| mode.0 & !PLAIN_MODE == 0)
}

impl Venus {
    /// What a change does, if the cached copy of the directory is valid and the change is an ordinary one that will succeed.
    pub(super) fn plan(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>, change: &Change) -> Option<Plan> {
        if let Change::RemoveDir(_) = change {
            return self.plan_of_rmdir(dir, volume, change);
        }
        self.plan_by_names(dir, volume, change)
    }

    fn plan_by_names(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>, change: &Change) -> Option<Plan> {
        let now = self.now();
        let state = dir.state();
        let version = state.status.filter(|_| state.is_promised(volume, now))?.data_version;
        let copy = state.directory.as_ref().filter(|copy| copy.version == version)?;
        let names = Names { dir: dir.key, blob: copy.blob() };
        match change {
            Change::CreateFile(fs::CreateSmall { create, .. }) => {
                names.new_object(&create.name, FileKind::File, 0, create.status)
            }
            Change::MakeDir(call) => {
                names.new_object(&call.name, FileKind::Directory, PAGE_LEN as u64, call.status)
            }
            Change::Symlink(call) => names.new_object(
                &call.name,
                FileKind::Symlink,
                call.contents.as_bytes().len() as u64,
                call.status,
            ),
            Change::RemoveFile(call) => names.removal(&call.name, false),
            Change::RemoveDir(call) => names.removal(&call.name, true),
            Change::Rename(call) => names.rename(call),
            Change::Link(_) | Change::Store(_) | Change::StoreStatus(_) => None,
        }
    }

    /// Only a directory that was made under the same lease and is empty: in another one others may be making something.
    fn plan_of_rmdir(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>, change: &Change) -> Option<Plan> {
        let plan = self.plan_by_names(dir, volume, change)?;
        let target = *plan.concerns.last()?;
        let leases = [dir.key, target].map(|key| self.leases.known(key));
        let is_of_lease = matches!(&leases, [Some(lease), Some(other)] if Arc::ptr_eq(lease, other));
        let removed = self.vnodes.peek(target).filter(|_| is_of_lease)?;
        let state = removed.state();
        let version = state.status.filter(|_| state.is_promised(volume, self.now()))?.data_version;
        let copy = state.directory.as_ref().filter(|copy| copy.version == version)?;
        let is_empty = copy.blob().entries(0).all(|entry| matches!(entry.name, b"." | b".."));
        is_empty.then_some(plan)
    }
}
