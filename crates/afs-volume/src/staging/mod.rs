//! Writing a volume's whole content anew, out of sight until it is complete.
//!
//! A restore writes in an epoch that no volume holds. Where it changes a state, that is the epoch behind the volume's, if the volume is
//! its group's newest state: rows that stay are shared. A full restore, and that of a clone which newer states stand upon, writes in a group of
//! its own. [`Restore::commit`] has the volume hold the new epoch instead of its old one, in one transaction. An epoch that is
//! not committed is taken down in the background, also after a restart.

mod begin;
mod check;
mod commit;
mod image;
mod put;
mod seen;
mod strike;

pub use commit::RestoredHeader;
pub use image::{ImageData, VnodeImage};

use std::sync::Arc;

use afs_wire::ids::{Uniquifier, VnodeId};

use crate::data_reader::Span;
use crate::error::VolumeError;
use crate::header::VolumeHeader;
use crate::new_data::DataWriter;
use crate::place::Place;
use crate::record::VnodeRecord;
use crate::rows::Rows;
use crate::store::Store;
use crate::volume::Volume;
use begin::Reservation;
use put::Batch;
use seen::Seen;

/// A restore under way. Dropped without [`Restore::commit`] it leaves the volume as it was.
///
/// Memory: a few megabytes, and a bit for each vnode.
pub struct Restore {
    volume: Arc<Volume>,
    reservation: Reservation,
    /// The header of the state that is being written, which nobody sees.
    staged: VolumeHeader,
    /// Where what stays is. In the staged group it need not be written again.
    base: Place,
    /// Whether everything is written anew.
    full: bool,
    /// Vnodes that the new state has.
    seen: Seen,
    batch: Batch,
}

impl Restore {
    /// Begins to take the bytes of a file.
    pub fn write_data(&self) -> Result<DataWriter, VolumeError> {
        self.volume.write_data(0)
    }

    /// Writes a vnode, in place of what the number stood for. Durable, and its mistakes told, by the time of
    /// [`Restore::commit`]; some vnodes are written together.
    ///
    /// # Errors
    /// `Damaged` for an image that cannot be: a type that does not go with the number, a directory with other than whole
    /// pages.
    pub async fn put(&mut self, image: VnodeImage, data: ImageData) -> Result<(), VolumeError> {
        image::check(&image, &data)?;
        self.seen.insert(image.vnode);
        self.batch.push(image, data);
        if self.batch.is_full() { self.flush().await } else { Ok(()) }
    }

    /// Leaves a vnode as it is in the volume's present state.
    ///
    /// # Errors
    /// `NoVnode` where it is not there, and in a full restore, which nothing stays in.
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

    /// Which user of that number the new state has, if it has one already.
    ///
    /// # Errors
    /// Of the store.
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

    /// Gives the restore up: the volume is as it was, and what was written is gone when this resolves.
    pub async fn abandon(self) -> Result<(), VolumeError> {
        let store = self.store().clone();
        let group = self.staged.group;
        drop(self.reservation);
        while store.take_down_group(group).await? {}
        Ok(())
    }

    fn store(&self) -> &Arc<Store> {
        self.volume.store()
    }
}
