//! Batched writes of vnodes into the staged state.

use std::sync::Arc;

use afs_kv::Txn;
use afs_wire::ids::{Uniquifier, VnodeId};

use super::{ImageData, Restore, VnodeImage};
use crate::error::VolumeError;
use crate::header::VolumeHeader;
use crate::store::Store;
use crate::tx::VolumeTx;

/// Vnodes for one transaction.
#[derive(Default)]
pub(super) struct Batch {
    vnodes: Vec<(VnodeImage, ImageData)>,
    bytes: usize,
}

impl Batch {
    pub(super) fn push(&mut self, image: VnodeImage, data: ImageData) {
        self.bytes += data.in_memory();
        self.vnodes.push((image, data));
    }

    /// The uniquifier of a vnode in the batch.
    pub(super) fn unique(&self, vnode: VnodeId) -> Option<Uniquifier> {
        self.vnodes.iter().rev().find(|(image, _)| image.vnode == vnode).map(|(image, _)| image.unique)
    }

    pub(super) fn is_full(&self) -> bool {
        self.vnodes.len() >= VNODES_MAX || self.bytes >= BYTES_MAX
    }
}

impl Restore {
    /// Writes the batch.
    pub(super) async fn flush(&mut self) -> Result<(), VolumeError> {
        let batch = std::mem::take(&mut self.batch).vnodes;
        if batch.is_empty() {
            return Ok(());
        }
        if self.store().kv.is_short() {
            return Err(VolumeError::DiskFull);
        }
        self.write(move |tx| batch.into_iter().try_for_each(|(image, data)| tx.put_image(image, data))).await
    }

    /// Changes the staged state.
    pub(super) async fn write(
        &mut self,
        change: impl FnOnce(&mut VolumeTx<'_, '_>) -> Result<(), VolumeError> + Send + 'static,
    ) -> Result<(), VolumeError> {
        let (store, header) = (self.store().clone(), self.staged.clone());
        let written = self.store().kv.update(move |txn| write(txn, &store, header, change));
        self.staged = written.await?;
        Ok(())
    }
}

fn write(
    txn: &mut Txn<'_>,
    store: &Arc<Store>,
    header: VolumeHeader,
    change: impl FnOnce(&mut VolumeTx<'_, '_>) -> Result<(), VolumeError>,
) -> Result<VolumeHeader, VolumeError> {
    let mut tx = VolumeTx::with(txn, store, header);
    change(&mut tx)?;
    tx.finish_staged()
}

const VNODES_MAX: usize = 128;
const BYTES_MAX: usize = 1 << 20;
