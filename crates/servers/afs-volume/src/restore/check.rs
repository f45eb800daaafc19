//! Checks of a vnode in a dump.

use std::sync::Arc;

use afs_wire::dump::VnodeFields;
use afs_wire::fs::FileKind;
use afs_wire::ids::{DataVersion, Uniquifier, VnodeId};

use crate::staging::VnodeImage;

/// Odd numbers are directories, even ones files and links (`docs/protocol/dump.md` "7. Interchange rules for a new
/// implementation").
pub(super) fn class(vnode: VnodeId, fields: &VnodeFields) -> Result<(), &'static str> {
    match (fields.kind, vnode.is_directory()) {
        _ if vnode.0 == 0 => Err("there is no vnode 0"),
        (FileKind::Invalid, _) => Err("the dump does not say what it is"),
        (FileKind::Directory, false) => Err("it is a directory, and its number is even"),
        (FileKind::File | FileKind::Symlink, true) => Err("it is no directory, and its number is odd"),
        _ => Ok(()),
    }
}

/// A directory without an access list grants no rights.
pub(super) fn image(
    vnode: VnodeId,
    unique: Uniquifier,
    fields: VnodeFields,
    data_version: DataVersion,
) -> VnodeImage {
    let is_directory = fields.kind == FileKind::Directory;
    VnodeImage {
        vnode,
        unique,
        kind: fields.kind,
        link_count: fields.link_count.into(),
        data_version,
        client_mod_time: fields.client_mod_time,
        server_mod_time: fields.server_mod_time,
        change_time: fields.change_time.unwrap_or(fields.server_mod_time),
        author: fields.author,
        owner: fields.owner,
        group: fields.group,
        mode: fields.mode,
        parent: if vnode == VnodeId::ROOT { vnode } else { fields.parent },
        acl: is_directory.then(|| Arc::new(fields.acl.unwrap_or_default())),
    }
}
