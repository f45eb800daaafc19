//! Status and access lists. Source: `docs/protocol/fileserver.md` "6. Vnodes, modes, versions".

use std::sync::Arc;

use afs_wire::acl::Acl;
use afs_wire::fs::{FileKind, SetStatus};
use afs_wire::ids::{Fid, Mode, VnodeId};

use super::create::allowed_mode;
use super::{Actor, VolumeTx};
use crate::error::VolumeError;
use crate::record::VnodeRecord;

impl VolumeTx<'_, '_> {
    /// Sets the attributes of an object that a caller may set.
    pub fn set_status(
        &mut self,
        fid: Fid,
        set: &SetStatus,
        actor: Actor,
    ) -> Result<VnodeRecord, VolumeError> {
        let mut record = self.vnode(fid)?;
        self.apply_status(&mut record, set, actor)?;
        self.note_change(&mut record);
        self.note_update();
        self.put_vnode(record.clone());
        Ok(record)
    }

    /// Replaces the access list of a directory.
    pub fn set_acl(&mut self, fid: Fid, acl: Acl) -> Result<VnodeRecord, VolumeError> {
        let mut record = self.directory(fid)?;
        record.acl = Some(Arc::new(acl));
        self.note_change(&mut record);
        self.note_update();
        self.put_vnode(record.clone());
        Ok(record)
    }

    pub(super) fn apply_status(
        &mut self,
        record: &mut VnodeRecord,
        set: &SetStatus,
        actor: Actor,
    ) -> Result<(), VolumeError> {
        if let Some(owner) = set.owner {
            if owner != record.owner && !actor.administrator {
                record.mode = Mode(record.mode.0 & Mode::PERMISSIONS);
            }
            record.owner = owner;
            // The owner of the root directory is the volume's owner.
            if record.vnode == VnodeId::ROOT {
                self.edit_header().owner = owner;
            }
        }
        if let Some(mode) = set.mode {
            // Losing or gaining an x bit would turn a link into a mount point, or the reverse.
            if record.kind == FileKind::Symlink {
                return Err(VolumeError::Invalid);
            }
            record.mode = allowed_mode(mode, actor);
        }
        record.group = set.group.unwrap_or(record.group);
        record.client_mod_time = set.mod_time.unwrap_or(record.client_mod_time);
        Ok(())
    }
}
