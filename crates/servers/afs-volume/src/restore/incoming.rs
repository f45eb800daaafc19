//! Vnode of a dump that is being received.

use afs_wire::dir::{self, Blob, PAGE_LEN};
use afs_wire::dump::{LINK_LEN_MAX, VnodeFields};
use afs_wire::fs::FileKind;
use afs_wire::ids::{Uniquifier, VnodeId};
use bytes::{Bytes, BytesMut};

use crate::data_writer::DataWriter;
use crate::error::VolumeError;
use crate::staging::{ImageData, Restore};

/// A vnode whose record has begun. Its kind is known when the record ends: tags may come in any order.
pub(super) struct Incoming {
    pub(super) vnode: VnodeId,
    pub(super) unique: Uniquifier,
    data: Data,
}

enum Data {
    /// A directory, or possibly a link: bounded by the reader.
    Gathered(BytesMut),
    /// Too long for a link.
    Written(Box<DataWriter>, u64),
}

impl Incoming {
    pub(super) fn new(vnode: VnodeId, unique: Uniquifier) -> Self {
        Self { vnode, unique, data: Data::Gathered(BytesMut::new()) }
    }

    pub(super) fn begin_data(&mut self, len: u64, restore: &Restore) -> Result<(), VolumeError> {
        if !self.vnode.is_directory() && len > LINK_LEN_MAX {
            self.data = Data::Written(Box::new(restore.write_data()?), len);
        }
        Ok(())
    }

    pub(super) async fn push(&mut self, bytes: Bytes) -> Result<(), VolumeError> {
        match &mut self.data {
            Data::Gathered(data) => data.extend_from_slice(&bytes),
            Data::Written(writer, _) => writer.push(bytes).await?,
        }
        Ok(())
    }

    pub(super) async fn push_hole(&mut self, len: u64) -> Result<(), VolumeError> {
        match &mut self.data {
            Data::Gathered(data) => {
                let len = usize::try_from(len).ok().filter(|len| *len as u64 <= LINK_LEN_MAX);
                data.resize(data.len() + len.ok_or(VolumeError::TooLarge)?, 0);
                Ok(())
            }
            Data::Written(writer, _) => writer.push_hole(len).await,
        }
    }

    /// Bytes of data; called when all have arrived.
    pub(super) fn len(&self) -> u64 {
        match &self.data {
            Data::Gathered(data) => data.len() as u64,
            Data::Written(_, len) => *len,
        }
    }

    /// Whether the data is valid for such a vnode. The data of files and links is not checked: a link's text
    /// is interpreted by its reader.
    pub(super) fn check(&self, fields: &VnodeFields) -> Result<(), String> {
        match &self.data {
            Data::Gathered(data) if fields.kind == FileKind::Directory => self.check_directory(data, fields),
            _ => Ok(()),
        }
    }

    fn check_directory(&self, data: &[u8], fields: &VnodeFields) -> Result<(), String> {
        let mut blob = Blob::from_bytes(data.to_vec()).map_err(|error| error.to_string())?;
        let summary = dir::check(&mut blob).map_err(|error| error.to_string())?;
        if summary.this != (self.vnode, self.unique) {
            return Err(format!("the directory's \".\" is {}.{}", summary.this.0, summary.this.1));
        }
        let parent = if self.vnode == VnodeId::ROOT { VnodeId::ROOT } else { fields.parent };
        if summary.parent.0 != parent {
            return Err(format!("the directory's \"..\" is {}, its parent is {parent}", summary.parent.0));
        }
        Ok(())
    }

    /// The data in the form that the store takes.
    pub(super) async fn into_data(self, kind: FileKind, restore: &Restore) -> Result<ImageData, VolumeError> {
        let data = match self.data {
            Data::Written(writer, _) => return Ok(ImageData::Bytes(writer.finish().await?)),
            Data::Gathered(data) => data.freeze(),
        };
        match kind {
            FileKind::Directory => Ok(ImageData::Pages(pages(data))),
            FileKind::Symlink => Ok(ImageData::Link(data)),
            _ => {
                let mut writer = restore.write_data()?;
                writer.push(data).await?;
                Ok(ImageData::Bytes(writer.finish().await?))
            }
        }
    }
}

fn pages(mut data: Bytes) -> Vec<Bytes> {
    let mut pages = Vec::with_capacity(data.len() / PAGE_LEN);
    while !data.is_empty() {
        pages.push(data.split_to(PAGE_LEN.min(data.len())));
    }
    pages
}
