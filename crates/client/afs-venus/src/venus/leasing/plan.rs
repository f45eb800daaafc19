//! What a change of names in a leased directory does: by the cached copy of the directory, which is complete.

use std::sync::Arc;

use afs_wire::dir::{Blob, PAGE_LEN, PAGES_MAX};
use afs_wire::fs::{self, Change, FileKind, SetStatus, Status};
use afs_wire::ids::Mode;

use crate::key::Key;
use crate::leases::{New, USEFUL_MIN};
use crate::location::Volume;
use crate::venus::Venus;
use crate::vnode::Vnode;

/// Bytes of a longer directory in which nothing is decided: whether a name still fits is the server's decision.
const DIRECTORY_MAX: usize = (PAGES_MAX as usize - 8) * PAGE_LEN;
/// Bytes of the quota that a new object, and the growth of its directory, take at most, besides its data.
const OBJECT_COST: u64 = 4 << 10;
pub(super) const NAME_COST: u64 = 2 << 10;
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
    /// An object that gets another name, with its status then.
    pub linked: Option<(Arc<Vnode>, Status)>,
    /// The object that loses a name.
    pub unlinked: Option<Key>,
    /// The other directory of a rename.
    pub into: Option<Arc<Vnode>>,
    /// How the number of directories in the directory changes.
    pub subdirectories: i32,
    /// Bytes of the quota that it takes at most.
    pub cost: u64,
}

impl Plan {
    pub fn of_names(concerns: Vec<Key>, cost: u64) -> Plan {
        Plan {
            new: New::Nothing,
            kind: FileKind::Invalid,
            length: 0,
            set: SetStatus::default(),
            concerns,
            linked: None,
            unlinked: None,
            into: None,
            subdirectories: 0,
            cost,
        }
    }
}

/// The names of a directory.
pub(super) struct Names<'a> {
    dir: Key,
    blob: &'a Blob,
}

impl Names<'_> {
    /// The object of a name; `None` where the copy is damaged.
    pub fn find(&self, name: &fs::Name) -> Option<Option<Key>> {
        let found = self.blob.lookup(name.as_bytes()).ok()?;
        Some(found.map(|(vnode, unique)| self.dir.sibling(vnode, unique)))
    }

    /// Whether the name is free, and the directory has room for it.
    pub fn takes(&self, name: &fs::Name) -> bool {
        self.find(name) == Some(None) && self.blob.as_bytes().len() <= DIRECTORY_MAX
    }

    fn new_object(&self, name: &fs::Name, kind: FileKind, length: u64, set: SetStatus) -> Option<Plan> {
        let is_mount_point = kind == FileKind::Symlink && set.mode.is_none_or(Mode::marks_mount_point);
        if is_mount_point || !is_plain(&set) || !self.takes(name) {
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
        let plan = Plan { unlinked: Some(target), ..Plan::of_names(vec![self.dir, target], 0) };
        (target.fid.is_directory() == of_directory)
            .then_some(Plan { subdirectories: -i32::from(of_directory), ..plan })
    }

    /// Whether there are so many that a lease costs fewer calls than their removals.
    pub fn are_many(&self) -> bool {
        let dots = 2;
        self.blob.entries(0).nth(USEFUL_MIN as usize + dots - 1).is_some()
    }

    /// Whether the directory is empty.
    fn are_none(&self) -> bool {
        self.blob.entries(0).all(|entry| matches!(entry.name, b"." | b".."))
    }

    fn rename(&self, change: &fs::Rename) -> Option<Plan> {
        let moved = self.find(&change.old_name)??;
        let replaced = self.find(&change.new_name)?;
        let is_plain =
            |replaced: Key| !replaced.fid.is_directory() && !moved.fid.is_directory() && replaced != moved;
        let concerns = [self.dir, moved].into_iter().chain(replaced).collect();
        let plan = Plan { unlinked: replaced, ..Plan::of_names(concerns, NAME_COST) };
        replaced.is_none_or(is_plain).then_some(plan)
    }
}

/// Whether any owner of an object may set this.
pub(super) fn is_plain(set: &SetStatus) -> bool {
    set.owner.is_none() && set.group.is_none() && set.mode.is_none_or(|mode| mode.0 & !PLAIN_MODE == 0)
}

impl Venus {
    /// What a change does, if the cached copy of the directory is valid and the change is an ordinary one that will succeed.
    pub(super) fn plan(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>, change: &Change) -> Option<Plan> {
        match change {
            Change::RemoveDir(_) => self.plan_of_rmdir(dir, volume, change),
            Change::Link(call) => self.plan_of_link(dir, volume, call),
            Change::Rename(call) if call.old_dir != call.new_dir => self.plan_of_move(dir, volume, call),
            _ => self.plan_by_names(dir, volume, change),
        }
    }

    fn plan_by_names(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>, change: &Change) -> Option<Plan> {
        self.with_names(dir, volume, |names| match change {
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
        })
    }

    /// Looks at the names of a directory, if the cached copy is valid.
    pub(super) fn with_names<T>(
        &self,
        dir: &Vnode,
        volume: &Volume,
        look: impl FnOnce(Names<'_>) -> Option<T>,
    ) -> Option<T> {
        let now = self.now();
        let state = dir.state();
        let version = state.status.filter(|_| state.is_promised(volume, now))?.data_version;
        let copy = state.directory.as_ref().filter(|copy| copy.version == version)?;
        look(Names { dir: dir.key, blob: copy.blob() })
    }

    /// Whether one lease is of both: leased directories, or objects that were made under a lease.
    pub(super) fn are_of_one_lease(&self, one: Key, other: Key) -> bool {
        let leases = [one, other].map(|key| self.leases.known(key));
        matches!(&leases, [Some(lease), Some(other)] if Arc::ptr_eq(lease, other))
    }

    /// Only a directory that was made under the same lease and is empty: in another one others may be making something.
    fn plan_of_rmdir(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>, change: &Change) -> Option<Plan> {
        let plan = self.plan_by_names(dir, volume, change)?;
        let target = *plan.concerns.last()?;
        let removed = self.vnodes.peek(target).filter(|_| self.are_of_one_lease(dir.key, target))?;
        self.with_names(&removed, volume, |names| names.are_none().then_some(plan))
    }
}
