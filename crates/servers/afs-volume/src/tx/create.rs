//! Creation of files, directories and links. Source: `docs/protocol/fileserver.md` "6. Vnodes, modes,
//! versions" and "7. Operation semantics and errors".

use std::sync::Arc;

use afs_wire::acl::Acl;
use afs_wire::fs::{FileKind, SetStatus};
use afs_wire::ids::{DataVersion, Fid, FileTime, Mode, Uniquifier, VnodeId};
use bytes::Bytes;

use super::{Actor, VolumeTx, names};
use crate::cuts::Cuts;
use crate::error::VolumeError;
use crate::extent::LITERAL_MAX;
use crate::record::{VnodeRecord, blocks};

/// Result of a creation. The promises of all other clients on the directory must be broken.
#[derive(Clone, Debug)]
pub struct Created {
    /// The new object.
    pub object: VnodeRecord,
    /// Its directory.
    pub directory: VnodeRecord,
}

impl VolumeTx<'_, '_> {
    /// Creates an empty file.
    pub fn create_file(
        &mut self,
        directory: Fid,
        name: &[u8],
        set: &SetStatus,
        actor: Actor,
    ) -> Result<Created, VolumeError> {
        self.create(directory, name, FileKind::File, set, actor, |_, _| Ok(()))
    }

    /// Creates a directory, which gets a copy of its parent's access list.
    pub fn make_dir(
        &mut self,
        directory: Fid,
        name: &[u8],
        set: &SetStatus,
        actor: Actor,
    ) -> Result<Created, VolumeError> {
        let mut created = self.create(directory, name, FileKind::Directory, set, actor, |tx, object| {
            tx.make_pages(object, (directory.vnode, directory.unique))
        })?;
        created.directory.link_count += 1;
        self.put_vnode(created.directory.clone());
        Ok(created)
    }

    /// Creates a symbolic link or mount point with the text `contents`: at most 16 KiB, stored unchanged.
    pub fn symlink(
        &mut self,
        directory: Fid,
        name: &[u8],
        contents: &[u8],
        set: &SetStatus,
        actor: Actor,
    ) -> Result<Created, VolumeError> {
        if contents.len() > LITERAL_MAX {
            return Err(VolumeError::NameTooLong);
        }
        self.create(directory, name, FileKind::Symlink, set, actor, |tx, object| {
            object.length = contents.len() as u64;
            tx.put_literal(object, Bytes::copy_from_slice(contents))
        })
    }

    fn create(
        &mut self,
        directory: Fid,
        name: &[u8],
        kind: FileKind,
        set: &SetStatus,
        actor: Actor,
        fill: impl FnOnce(&mut Self, &mut VnodeRecord) -> Result<(), VolumeError>,
    ) -> Result<Created, VolumeError> {
        let mut parent = self.directory(directory)?;
        names::check_new(name)?;
        let mut object = self.new_record(&parent, kind, set, actor)?;
        fill(self, &mut object)?;
        self.charge_object(blocks(object.length))?;
        self.header.file_count += 1;
        self.insert_name(&mut parent, name, (object.vnode, object.unique))?;
        self.touch_directory(&mut parent, actor);
        self.put_vnode(parent.clone());
        self.put_vnode(object.clone());
        Ok(Created { object, directory: parent })
    }

    fn new_record(
        &mut self,
        parent: &VnodeRecord,
        kind: FileKind,
        set: &SetStatus,
        actor: Actor,
    ) -> Result<VnodeRecord, VolumeError> {
        let owner = set.owner.unwrap_or(actor.id);
        if owner != actor.id && !actor.administrator {
            return Err(VolumeError::NotPermitted);
        }
        let is_directory = kind == FileKind::Directory;
        let class = if is_directory { VnodeId(1) } else { VnodeId(2) };
        let (vnode, unique) = self.new_number(class)?;
        let mut record = VnodeRecord {
            vnode,
            unique,
            kind,
            data_version: DataVersion(0),
            length: 0,
            author: actor.id,
            owner,
            group: set.group.unwrap_or(parent.group),
            mode: allowed_mode(set.mode.unwrap_or(Mode(0o777)), actor),
            link_count: if is_directory { 2 } else { 1 },
            parent: parent.vnode,
            parent_unique: parent.unique,
            client_mod_time: FileTime::default(),
            server_mod_time: self.now,
            change_time: FileTime::default(),
            acl: if is_directory { parent.acl.clone() } else { None },
            content: self.header.take_content(),
            stored: 0,
            cuts: Cuts::default(),
        };
        self.note_change_of(&mut record, set.mod_time.or(self.made_at));
        record.client_mod_time = set.mod_time.unwrap_or(self.modified_at(&record));
        Ok(record)
    }

    /// Creates the root directory of a new volume: vnode 1, uniquifier 1, its own parent.
    pub(crate) fn make_root(&mut self, acl: Acl) -> Result<(), VolumeError> {
        let (vnode, unique) = (VnodeId::ROOT, Uniquifier(1));
        let mut root = VnodeRecord {
            vnode,
            unique,
            kind: FileKind::Directory,
            data_version: DataVersion(1),
            length: 0,
            author: self.header.owner,
            owner: self.header.owner,
            group: 0,
            mode: Mode(0o777),
            link_count: 2,
            parent: vnode,
            parent_unique: unique,
            client_mod_time: self.time,
            server_mod_time: self.now,
            change_time: self.time,
            acl: Some(Arc::new(acl)),
            content: self.header.take_content(),
            stored: 0,
            cuts: Cuts::default(),
        };
        self.make_pages(&mut root, (vnode, unique))?;
        self.charge_object(blocks(root.length))?;
        self.header.file_count += 1;
        self.put_vnode(root);
        Ok(())
    }
}

/// The permission bits that this actor may set.
pub(super) fn allowed_mode(mode: Mode, actor: Actor) -> Mode {
    Mode(mode.0 & if actor.administrator { Mode::ALL } else { Mode::PERMISSIONS })
}
