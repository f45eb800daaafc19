//! Rename. Source: `docs/protocol/fileserver.md` "7. Operation semantics and errors", the Rename rows, and
//! "15. Traps", T12.

use afs_wire::dir::Target;
use afs_wire::ids::Fid;

use super::{Actor, Object, VolumeTx, names};
use crate::error::VolumeError;
use crate::record::VnodeRecord;
use crate::rows::damaged;

/// Arguments of a rename.
#[derive(Clone, Copy, Debug)]
pub struct Rename<'n> {
    /// The present directory.
    pub old_directory: Fid,
    /// The present name.
    pub old_name: &'n [u8],
    /// The new directory.
    pub new_directory: Fid,
    /// The new name.
    pub new_name: &'n [u8],
}

/// What becomes of an object that has the new name already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replacing {
    /// It is replaced.
    Allowed,
    /// The caller may not remove a name from the new directory: [`VolumeError::AccessDenied`].
    Denied,
    /// It stays: [`VolumeError::Exists`].
    Never,
}

impl Replacing {
    fn check(self) -> Result<(), VolumeError> {
        match self {
            Self::Allowed => Ok(()),
            Self::Denied => Err(VolumeError::AccessDenied),
            Self::Never => Err(VolumeError::Exists),
        }
    }
}

/// Result of a rename. The promises of all other clients on both directories must be broken.
#[derive(Clone, Debug)]
pub struct Renamed {
    /// The old directory.
    pub old_directory: VnodeRecord,
    /// The new directory, equal to the old one for a rename within one directory.
    pub new_directory: VnodeRecord,
    /// The renamed object.
    pub object: VnodeRecord,
    /// Whether the object is a directory whose `..` changed; promises on it must then be broken to all
    /// clients, the caller included.
    pub moved_directory: bool,
    /// The object that had the new name before.
    pub replaced: Option<Object>,
}

/// The records that a rename concerns.
struct Plan {
    old: VnodeRecord,
    new: VnodeRecord,
    object: VnodeRecord,
    replaced: Option<VnodeRecord>,
}

impl Rename<'_> {
    /// The checks that precede those of the caller's rights.
    pub fn check(&self) -> Result<(), VolumeError> {
        names::check_new(self.new_name)?;
        if self.old_directory.volume != self.new_directory.volume {
            return Err(VolumeError::CrossDevice);
        }
        names::check_old(self.old_name)?;
        names::check_old(self.new_name)
    }

    fn within_one_directory(&self) -> bool {
        self.old_directory == self.new_directory
    }
}

impl VolumeTx<'_, '_> {
    /// Renames.
    pub fn rename(
        &mut self,
        rename: Rename<'_>,
        replacing: Replacing,
        actor: Actor,
    ) -> Result<Renamed, VolumeError> {
        rename.check()?;
        let Plan { mut old, mut new, mut object, replaced } = self.plan(&rename, replacing)?;
        let across = !rename.within_one_directory();
        let moved_directory = across && object.is_directory();
        if let Some(replaced) = &replaced {
            self.remove_name(&mut new, rename.new_name)?;
            new.link_count = new.link_count.saturating_sub(u32::from(replaced.is_directory()));
        }
        self.insert_name(&mut new, rename.new_name, target(&object))?;
        // Within one directory both names are in the same pages, and one record has both changes.
        if across {
            self.remove_name(&mut old, rename.old_name)?;
            self.touch_directory(&mut old, actor);
        } else {
            self.remove_name(&mut new, rename.old_name)?;
        }
        self.touch_directory(&mut new, actor);
        if moved_directory {
            old.link_count = old.link_count.saturating_sub(1);
            new.link_count += 1;
            self.replace_name(&mut object, b"..", target(&new))?;
            object.data_version = object.data_version.next();
        }
        if across {
            // Its record names its directory: incremental dumps must include it.
            self.note_change(&mut object);
        }
        (object.parent, object.parent_unique) = target(&new);
        let replaced = replaced.map(|record| self.take_replaced(record)).transpose()?;
        if across {
            self.put_vnode(old.clone());
        } else {
            old = new.clone();
        }
        self.put_vnode(new.clone());
        self.put_vnode(object.clone());
        Ok(Renamed { old_directory: old, new_directory: new, object, moved_directory, replaced })
    }

    /// Finds the records that a rename concerns, and checks for obstacles.
    fn plan(&mut self, rename: &Rename<'_>, replacing: Replacing) -> Result<Plan, VolumeError> {
        let old = self.directory(rename.old_directory)?;
        let new = self.directory(rename.new_directory)?;
        let source = self.lookup(&old, rename.old_name)?.ok_or(VolumeError::NotFound)?;
        if [target(&old), target(&new)].contains(&source) {
            return Err(VolumeError::Loop);
        }
        let object = self.named(source.0, source.1)?;
        let across = !rename.within_one_directory();
        if across && !object.is_directory() && object.link_count != 1 {
            return Err(VolumeError::CrossDevice);
        }
        let replaced = self.replaceable(rename, &object, [&old, &new], replacing)?;
        if across && object.is_directory() {
            self.check_not_beneath(&new, &object)?;
        }
        Ok(Plan { old, new, object, replaced })
    }

    /// The object with the new name, if it may be replaced.
    fn replaceable(
        &mut self,
        rename: &Rename<'_>,
        object: &VnodeRecord,
        [old, new]: [&VnodeRecord; 2],
        replacing: Replacing,
    ) -> Result<Option<VnodeRecord>, VolumeError> {
        let Some(found) = self.lookup(new, rename.new_name)? else { return Ok(None) };
        replacing.check()?;
        if [target(object), target(old), target(new)].contains(&found) {
            return Err(VolumeError::Invalid);
        }
        let replaced = self.named(found.0, found.1)?;
        match (object.is_directory(), replaced.is_directory()) {
            (true, false) => Err(VolumeError::NotDirectory),
            (false, true) => Err(VolumeError::IsDirectory),
            (true, true) if !self.is_empty_directory(&replaced)? => Err(VolumeError::NotEmpty),
            _ => Ok(Some(replaced)),
        }
    }

    /// Refuses to move a directory beneath itself: it must not be an ancestor of its new parent.
    fn check_not_beneath(&mut self, new: &VnodeRecord, object: &VnodeRecord) -> Result<(), VolumeError> {
        let mut ancestor = new.clone();
        // Each step reaches another directory, unless the store is damaged.
        for _ in 0..=self.header.file_count {
            if ancestor.vnode == object.vnode {
                return Err(VolumeError::Loop);
            }
            if ancestor.vnode == ancestor.parent {
                return Ok(());
            }
            ancestor = self.named(ancestor.parent, ancestor.parent_unique)?;
        }
        Err(damaged(new.vnode, "its ancestors go round in circles"))
    }

    fn take_replaced(&mut self, record: VnodeRecord) -> Result<Object, VolumeError> {
        if record.is_directory() {
            self.free_vnode(&record)?;
            return Ok(Object::Gone(record.fid(self.header.id)));
        }
        self.drop_name(record)
    }
}

fn target(record: &VnodeRecord) -> Target {
    (record.vnode, record.unique)
}
