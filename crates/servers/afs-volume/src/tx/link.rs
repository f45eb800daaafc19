//! Hard links. Source: `docs/protocol/fileserver.md` "7. Operation semantics and errors", Link.

use afs_wire::fs::FileKind;
use afs_wire::ids::Fid;

use super::{Actor, VolumeTx, names};
use crate::error::VolumeError;
use crate::record::VnodeRecord;

/// Result of a link. The promises of all other clients on both must be broken.
#[derive(Clone, Debug)]
pub struct Linked {
    /// The file, with its new link count.
    pub object: VnodeRecord,
    /// The directory.
    pub directory: VnodeRecord,
}

impl VolumeTx<'_, '_> {
    /// Adds another name for a file of this directory.
    pub fn link(
        &mut self,
        directory: Fid,
        name: &[u8],
        existing: Fid,
        actor: Actor,
    ) -> Result<Linked, VolumeError> {
        if existing.volume != directory.volume {
            return Err(VolumeError::CrossDevice);
        }
        let mut parent = self.directory(directory)?;
        names::check_new(name)?;
        if existing.is_directory() {
            return Err(VolumeError::IsDirectory);
        }
        let mut object = self.vnode(existing)?;
        // Mount points must not get a second name; no link may.
        if object.kind != FileKind::File {
            return Err(VolumeError::IsDirectory);
        }
        if (object.parent, object.parent_unique) != (parent.vnode, parent.unique) {
            return Err(VolumeError::CrossDevice);
        }
        self.insert_name(&mut parent, name, (object.vnode, object.unique))?;
        self.touch_directory(&mut parent, actor);
        object.link_count += 1;
        object.author = actor.id;
        self.note_change(&mut object);
        self.put_vnode(parent.clone());
        self.put_vnode(object.clone());
        Ok(Linked { object, directory: parent })
    }
}
