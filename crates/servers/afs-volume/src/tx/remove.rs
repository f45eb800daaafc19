//! Removal of names. Source: `docs/protocol/fileserver.md` "7. Operation semantics and errors", RemoveFile
//! and RemoveDir.

use afs_wire::ids::Fid;

use super::{Actor, VolumeTx, names};
use crate::error::VolumeError;
use crate::record::VnodeRecord;

/// State of an object that lost a name.
#[derive(Clone, Debug)]
pub enum Object {
    /// Deleted; promises on it are dropped silently.
    Gone(Fid),
    /// It has other names; promises on it must be broken to all clients, the caller included.
    Remains(VnodeRecord),
}

/// Result of a removal. The promises of all other clients on the directory must be broken.
#[derive(Clone, Debug)]
pub struct Removed {
    /// The directory.
    pub directory: VnodeRecord,
    /// The object that had the name.
    pub object: Object,
}

impl VolumeTx<'_, '_> {
    /// Removes a name of a file, link or mount point, and the object with its last name.
    pub fn remove_file(&mut self, directory: Fid, name: &[u8], actor: Actor) -> Result<Removed, VolumeError> {
        let mut parent = self.directory(directory)?;
        let object = self.entry(&parent, name)?;
        if object.is_directory() {
            return Err(VolumeError::IsDirectory);
        }
        self.remove_name(&mut parent, name)?;
        self.touch_directory(&mut parent, actor);
        self.put_vnode(parent.clone());
        let object = self.drop_name(object)?;
        Ok(Removed { directory: parent, object })
    }

    /// Removes an empty directory.
    pub fn remove_dir(&mut self, directory: Fid, name: &[u8], actor: Actor) -> Result<Removed, VolumeError> {
        let mut parent = self.directory(directory)?;
        let object = self.entry(&parent, name)?;
        if !object.is_directory() {
            return Err(VolumeError::NotDirectory);
        }
        if !self.is_empty_directory(&object)? {
            return Err(VolumeError::NotEmpty);
        }
        self.remove_name(&mut parent, name)?;
        self.touch_directory(&mut parent, actor);
        parent.link_count = parent.link_count.saturating_sub(1);
        self.put_vnode(parent.clone());
        self.free_vnode(&object)?;
        Ok(Removed { directory: parent, object: Object::Gone(object.fid(self.header.id)) })
    }

    /// The object behind a name to be removed.
    fn entry(&mut self, parent: &VnodeRecord, name: &[u8]) -> Result<VnodeRecord, VolumeError> {
        names::check_old(name)?;
        let (vnode, unique) = self.lookup(parent, name)?.ok_or(VolumeError::NotFound)?;
        self.named(vnode, unique)
    }

    /// Decrements the link count of a file.
    pub(super) fn drop_name(&mut self, mut object: VnodeRecord) -> Result<Object, VolumeError> {
        if object.link_count <= 1 {
            self.free_vnode(&object)?;
            return Ok(Object::Gone(object.fid(self.header.id)));
        }
        object.link_count -= 1;
        self.note_change(&mut object);
        self.put_vnode(object.clone());
        Ok(Object::Remains(object))
    }
}
