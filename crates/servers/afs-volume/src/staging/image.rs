//! Vnode image: a vnode from another volume or from a dump, with its attributes and data.

use std::sync::Arc;

use afs_wire::acl::Acl;
use afs_wire::dir::{PAGE_LEN, PAGES_MAX};
use afs_wire::fs::FileKind;
use afs_wire::ids::{DataVersion, FileTime, Mode, Uniquifier, ViceId, VnodeId};
use bytes::Bytes;

use crate::error::VolumeError;
use crate::extent::LITERAL_MAX;
use crate::new_data::NewData;
use crate::record::VnodeRecord;
use crate::rows::damaged;

/// A vnode whose numbers are kept as given (`docs/protocol/dump.md` "2. Tags").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VnodeImage {
    /// Its number: odd for directories.
    pub vnode: VnodeId,
    /// Its uniquifier, which distinguishes the successive uses of that number.
    pub unique: Uniquifier,
    /// File, directory or link.
    pub kind: FileKind,
    /// Names of a file; 2 + subdirectories of a directory.
    pub link_count: u32,
    /// Number of changes of the data.
    pub data_version: DataVersion,
    /// Modification time as shown to users.
    pub client_mod_time: FileTime,
    /// Time of the last change, by the clock of the server that made it.
    pub server_mod_time: FileTime,
    /// Time of the last change as shown to users.
    pub change_time: FileTime,
    /// The user who last changed the data.
    pub author: ViceId,
    /// The owner.
    pub owner: ViceId,
    /// Unix group number.
    pub group: u32,
    /// Permission bits.
    pub mode: Mode,
    /// Its directory; 0 for the root directory.
    pub parent: VnodeId,
    /// Access list; a directory without one grants no rights.
    pub acl: Option<Arc<Acl>>,
}

/// A vnode's data.
pub enum ImageData {
    /// A file's bytes, which begin at position 0: [`Restore::write_data`](super::Restore::write_data).
    Bytes(NewData),
    /// A link's text, at most 16 KiB.
    Link(Bytes),
    /// A directory's pages, each complete.
    Pages(Vec<Bytes>),
}

impl VnodeImage {
    /// The image of a vnode of this store, for another volume.
    pub fn of(record: &VnodeRecord) -> Self {
        Self {
            vnode: record.vnode,
            unique: record.unique,
            kind: record.kind,
            link_count: record.link_count,
            data_version: record.data_version,
            client_mod_time: record.client_mod_time,
            server_mod_time: record.server_mod_time,
            change_time: record.change_time,
            author: record.author,
            owner: record.owner,
            group: record.group,
            mode: record.mode,
            parent: record.parent,
            acl: record.acl.clone(),
        }
    }
}

impl ImageData {
    /// The complete data of a directory or link.
    pub(super) fn whole(record: &VnodeRecord, bytes: Vec<u8>) -> Self {
        let bytes = Bytes::from(bytes);
        if !record.is_directory() {
            return Self::Link(bytes);
        }
        let page = |at: usize| bytes.slice(at * PAGE_LEN..bytes.len().min((at + 1) * PAGE_LEN));
        Self::Pages((0..bytes.len().div_ceil(PAGE_LEN)).map(page).collect())
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(data) => data.len(),
            Self::Link(text) => text.len() as u64,
            Self::Pages(pages) => (pages.len() * PAGE_LEN) as u64,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of its bytes that are in memory.
    pub(super) fn in_memory(&self) -> usize {
        match self {
            Self::Bytes(data) if data.len() > LITERAL_MAX as u64 => 0,
            other => other.len() as usize,
        }
    }
}

/// Checks that the image is valid.
pub(super) fn check(image: &VnodeImage, data: &ImageData) -> Result<(), VolumeError> {
    let bad = |what| Err(damaged(image.vnode, what));
    if image.vnode.0 == 0 || image.vnode.0 >= VNODE_MAX {
        return bad("no vnode can have this number");
    }
    if image.vnode.is_directory() != (image.kind == FileKind::Directory) {
        return bad("its type does not go with its number");
    }
    match (image.kind, data) {
        (FileKind::File, ImageData::Bytes(data)) if data.begins_at_zero() => Ok(()),
        (FileKind::Symlink, ImageData::Link(text)) if text.len() <= LITERAL_MAX => Ok(()),
        (FileKind::Symlink, ImageData::Link(_)) => bad("it is a link whose text is too long"),
        (FileKind::Directory, ImageData::Pages(pages)) => match pages.len() {
            _ if pages.iter().any(|page| page.len() != PAGE_LEN) => {
                bad("a page of the directory is not whole")
            }
            1.. if pages.len() <= usize::from(PAGES_MAX) => Ok(()),
            _ => bad("no directory has so many pages"),
        },
        _ => bad("its data does not go with its type"),
    }
}

/// The last numbers of both classes are not used, so that the next one never overflows.
const VNODE_MAX: u32 = u32::MAX - 2;
