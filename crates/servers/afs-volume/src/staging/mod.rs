//! Staging of a restore: a volume's new content, invisible until it is complete.
//!
//! A restore writes in an epoch that no volume references. An incremental one uses the epoch after the
//! volume's, if the volume is its group's newest state: unchanged rows are shared. A full restore, and that
//! of a clone with newer states above it, writes in a group of its own. [`Restore::commit`] makes the volume
//! reference the new epoch instead of its old one, in one transaction. An epoch that is not committed is
//! deleted in the background, also after a restart.

mod begin;
mod check;
mod commit;
mod image;
mod prune;
mod put;
mod vnode_set;

pub use commit::RestoredHeader;
pub use image::{ImageData, VnodeImage};

use std::sync::Arc;

use afs_wire::ids::{Uniquifier, VnodeId};

use crate::data_reader::Span;
use crate::data_writer::DataWriter;
use crate::error::VolumeError;
use crate::header::VolumeHeader;
use crate::location::Location;
use crate::record::VnodeRecord;
use crate::rows::Rows;
use crate::store::Store;
use crate::volume::Volume;
use begin::Reservation;
use put::Batch;
use vnode_set::VnodeSet;

/// A restore in progress. Dropped without [`Restore::commit`] it leaves the volume unchanged.
///
/// Memory: a few megabytes, and a bit for each vnode.
pub struct Restore {
    volume: Arc<Volume>,
    reservation: Reservation,
    /// The header of the staged state, which is invisible.
    staged: VolumeHeader,
    /// Location of the vnodes that stay. In the staged group they need not be written again.
    base: Location,
    /// Whether everything is written anew.
    full: bool,
    /// Vnodes of the new state.
    seen: VnodeSet,
    batch: Batch,
}

impl Restore {
    /// Starts to take the bytes of a file.
    pub fn write_data(&self) -> Result<DataWriter, VolumeError> {
        self.volume.write_data(0)
    }

    /// Writes a vnode in place of whatever had its number. Durable, with its errors reported, by the time of
    /// [`Restore::commit`]; some vnodes are written together.
    ///
    /// # Errors
    /// `Damaged` for an invalid image: a type that does not match the number, a directory with incomplete
    /// pages.
    pub async fn put(&mut self, image: VnodeImage, data: ImageData) -> Result<(), VolumeError> {
        image::check(&image, &data)?;
        self.seen.insert(image.vnode);
        self.batch.push(image, data);
        if self.batch.is_full() { self.flush().await } else { Ok(()) }
    }

    /// Keeps a vnode as it is in the volume's present state.
    ///
    /// # Errors
    /// `NoVnode` if it does not exist, and in a full restore, which keeps nothing.
    pub async fn keep(&mut self, vnode: VnodeId) -> Result<(), VolumeError> {
        if self.full {
            return Err(VolumeError::NoVnode);
        }
        let record = {
            let snapshot = self.store().kv.snapshot();
            snapshot.vnode_row(self.base.group, vnode, self.base.epoch)?.ok_or(VolumeError::NoVnode)?
        };
        if self.base.group != self.staged.group {
            let volume = self.volume.clone();
            return self.copy(&volume, record).await;
        }
        self.seen.insert(vnode);
        Ok(())
    }

    /// The uniquifier that the new state has with that number, if it has one already.
    ///
    /// # Errors
    /// Those of the store.
    pub fn written(&self, vnode: VnodeId) -> Result<Option<Uniquifier>, VolumeError> {
        if !self.seen.contains(vnode) {
            return Ok(None);
        }
        if let Some(unique) = self.batch.unique(vnode) {
            return Ok(Some(unique));
        }
        let row = self.store().kv.snapshot().vnode_row(self.staged.group, vnode, self.staged.epoch)?;
        Ok(row.map(|record| record.unique))
    }

    /// Copies a vnode of another volume, or of a state that shares nothing with the new one.
    pub(crate) async fn copy(&mut self, from: &Arc<Volume>, record: VnodeRecord) -> Result<(), VolumeError> {
        let mut reader = from.read_data(record.fid(from.id()), 0, u64::MAX)?;
        let record = reader.record().clone();
        let data = if record.kind == afs_wire::fs::FileKind::File {
            let mut writer = self.write_data()?;
            while let Some(span) = reader.next_span().await? {
                match span {
                    Span::Bytes(bytes) => writer.push(bytes).await?,
                    Span::Hole(len) => writer.push_hole(len).await?,
                }
            }
            ImageData::Bytes(writer.finish().await?)
        } else {
            // A directory has 2 MiB at most, a link 16 KiB.
            let mut whole = Vec::new();
            while let Some(bytes) = reader.next().await? {
                whole.extend_from_slice(&bytes);
            }
            ImageData::whole(&record, whole)
        };
        self.put(VnodeImage::of(&record), data).await
    }

    /// Abandons the restore: the volume is unchanged, and the staged data is deleted when this resolves.
    pub async fn abandon(self) -> Result<(), VolumeError> {
        let store = self.store().clone();
        let group = self.staged.group;
        drop(self.reservation);
        while store.reclaim_group(group).await? {}
        Ok(())
    }

    fn store(&self) -> &Arc<Store> {
        self.volume.store()
    }
}
