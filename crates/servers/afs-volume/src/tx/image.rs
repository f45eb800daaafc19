//! Vnode images within a restore's transaction.

use std::sync::Arc;

use afs_wire::ids::{Uniquifier, VnodeId};

use super::VolumeTx;
use crate::cuts::Cuts;
use crate::error::VolumeError;
use crate::ids::SlotIndex;
use crate::key::RowId;
use crate::record::VnodeRecord;
use crate::staging::{ImageData, VnodeImage};

impl VolumeTx<'_, '_> {
    /// Writes a vnode in place of whatever had its number. Usage is counted at the end.
    pub(crate) fn put_image(&mut self, image: VnodeImage, data: ImageData) -> Result<(), VolumeError> {
        if let Some(replaced) = self.by_number(image.vnode)? {
            self.drop_content(&replaced)?;
        }
        let mut record = self.record_of(image, data.len())?;
        match data {
            ImageData::Link(text) => self.put_literal(&mut record, text)?,
            ImageData::Bytes(data) => {
                self.put_pieces(&mut record, &data)?;
                self.keep_when_durable(data);
            }
            ImageData::Pages(pages) => {
                for (page, index) in pages.into_iter().zip(0..) {
                    let id = RowId::Page(self.header.group, record.content, SlotIndex(index));
                    self.put_row(id, Some(page.to_vec()))?;
                }
            }
        }
        self.put_vnode(record);
        Ok(())
    }

    /// Deletes a vnode that the new state does not have. Its number is not added to the list of freed ones.
    pub(crate) fn delete_image(&mut self, record: &VnodeRecord) -> Result<(), VolumeError> {
        self.drop_content(record)?;
        self.forget_vnode(record.vnode);
        Ok(())
    }

    /// Sets the directory of a vnode.
    pub(crate) fn set_parent(
        &mut self,
        vnode: VnodeId,
        directory: VnodeId,
        unique: Uniquifier,
    ) -> Result<(), VolumeError> {
        if let Some(mut record) = self.by_number(vnode)? {
            (record.parent, record.parent_unique) = (directory, unique);
            self.put_vnode(record);
        }
        Ok(())
    }

    fn record_of(&mut self, image: VnodeImage, length: u64) -> Result<VnodeRecord, VolumeError> {
        let (parent, parent_unique) = self.parent_of(&image)?;
        let is_directory = image.vnode.is_directory();
        Ok(VnodeRecord {
            vnode: image.vnode,
            unique: image.unique,
            kind: image.kind,
            data_version: image.data_version,
            length,
            author: image.author,
            owner: image.owner,
            group: image.group,
            mode: image.mode,
            link_count: image.link_count,
            parent,
            parent_unique,
            client_mod_time: image.client_mod_time,
            server_mod_time: image.server_mod_time,
            change_time: image.change_time,
            acl: is_directory.then(|| image.acl.unwrap_or_else(|| Arc::new(no_rights()))),
            content: self.header.take_content(),
            stored: 0,
            cuts: Cuts::default(),
        })
    }

    /// The root directory is its own parent. The uniquifier of a directory that comes later is set at the
    /// end.
    fn parent_of(&mut self, image: &VnodeImage) -> Result<(VnodeId, Uniquifier), VolumeError> {
        if image.vnode == VnodeId::ROOT {
            return Ok((VnodeId::ROOT, image.unique));
        }
        let parent = self.by_number(image.parent)?;
        Ok((image.parent, parent.map_or(Uniquifier(0), |parent| parent.unique)))
    }
}

fn no_rights() -> afs_wire::acl::Acl {
    afs_wire::acl::Acl { positive: Vec::new(), negative: Vec::new() }
}
