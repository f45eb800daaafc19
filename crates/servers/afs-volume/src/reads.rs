//! Reads of a volume in two forms: of memory alone, for threads that must not wait, and to the disk, for threads that may.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_env::EnvExt;
use afs_kv::Snapshot;
use afs_wire::fs::SeriesId;
use afs_wire::ids::{Fid, VnodeId};

use crate::copies;
use crate::data_reader::DataReader;
use crate::depth::Depth;
use crate::error::VolumeError;
use crate::extent::{SLOT_LEN, Slot};
use crate::ids::SlotIndex;
use crate::key::{self, SERIES};
use crate::leases::Lease;
use crate::located::LocatedChunk;
use crate::record::VnodeRecord;
use crate::rows::{Rows, RowsTo};
use crate::series::{self, LastList};
use crate::volume::Volume;

/// Reads of a volume's committed, durable state, at one [`Depth`].
#[derive(Clone, Copy)]
pub struct Reads<'a> {
    volume: &'a Arc<Volume>,
    depth: Depth,
}

impl Volume {
    /// Reads at this depth.
    pub fn reads(self: &Arc<Self>, depth: Depth) -> Reads<'_> {
        Reads { volume: self, depth }
    }

    /// Reads on the calling thread if memory suffices, else on a thread that may wait for a disk. `read` may
    /// run twice.
    ///
    /// # Errors
    /// Those of `read`; [`VolumeError::Busy`] when the process is stopping.
    pub async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl Fn(Reads<'_>) -> Result<T, VolumeError> + Send + 'static,
    ) -> Result<T, VolumeError> {
        match read(self.reads(Depth::Memory)) {
            Err(VolumeError::NotInMemory) => {}
            done => return done,
        }
        let volume = self.clone();
        let read = self.store().env.run_blocking(move || read(volume.reads(Depth::Disk)));
        read.await.unwrap_or(Err(VolumeError::Busy))
    }
}

impl Reads<'_> {
    /// The last list of a series, if that is known.
    pub fn last_list(&self, series: SeriesId) -> Result<Option<LastList>, VolumeError> {
        let rows = RowsTo { snapshot: &self.volume.store().kv.snapshot(), depth: self.depth };
        let row = rows.get_row(SERIES, &key::series(self.volume.id(), series))?;
        row.map(series::decoded).transpose()
    }

    /// The record of a vnode, or `None` if the number is free.
    pub fn vnode(&self, vnode: VnodeId) -> Result<Option<Arc<VnodeRecord>>, VolumeError> {
        let store = self.volume.store();
        if let Some(record) = store.cache.get(self.volume.id(), vnode) {
            return Ok(Some(record));
        }
        self.record_at(&store.kv.snapshot(), vnode)
    }

    /// The record behind a fid, with the errors of [`VolumeTx::vnode`](crate::VolumeTx::vnode).
    pub fn fetch(&self, fid: Fid) -> Result<Arc<VnodeRecord>, VolumeError> {
        if fid.volume.0 == 0 || fid.vnode.0 == 0 {
            return Err(VolumeError::Invalid);
        }
        if fid.volume != self.volume.id() {
            return Err(VolumeError::NoVolume);
        }
        self.vnode(fid.vnode)?.filter(|record| record.unique == fid.unique).ok_or(VolumeError::NoVnode)
    }

    /// Opens up to `len` bytes of an object's data from `position` on: a file's bytes, a link's text, a
    /// directory's pages. The data has the version of the reader's record. The reader may have to read the
    /// disk later ([`DataReader::must_plan`]).
    pub fn data(&self, fid: Fid, position: u64, len: u64) -> Result<DataReader, VolumeError> {
        self.fetch(fid)?;
        let reader = DataReader::open(self.volume, fid.vnode, position, len, self.depth)?;
        reader.filter(|reader| reader.record().unique == fid.unique).ok_or(VolumeError::NoVnode)
    }

    /// Those of the slots of a file that many small stores have crowded.
    pub(crate) fn crowded(&self, vnode: VnodeId, slots: &[SlotIndex]) -> Result<Vec<SlotIndex>, VolumeError> {
        let Some(record) = self.vnode(vnode)? else { return Ok(Vec::new()) };
        let snapshot = self.volume.store().kv.snapshot();
        let location = self.volume.location_at(&snapshot)?;
        let rows = RowsTo { snapshot: &snapshot, depth: self.depth };
        let mut crowded = Vec::new();
        // Behind the end of a file there is no row to look for.
        for index in slots.iter().filter(|index| u64::from(index.0) * SLOT_LEN < record.length) {
            if rows.slot_row(location.group, &record, *index, location.epoch)?.is_crowded() {
                crowded.push(*index);
            }
        }
        Ok(crowded)
    }

    /// A slot with a lease on its chunks; `None` if there is no such vnode.
    pub(crate) fn leased_slot(
        &self,
        vnode: VnodeId,
        index: SlotIndex,
    ) -> Result<Option<(Lease, Slot)>, VolumeError> {
        let store = self.volume.store();
        let snapshot = store.kv.snapshot();
        let location = self.volume.location_at(&snapshot)?;
        let Some(record) = self.record_at(&snapshot, vnode)? else { return Ok(None) };
        let rows = RowsTo { snapshot: &snapshot, depth: self.depth };
        let slot = rows.slot_row(location.group, &record, index, location.epoch)?;
        // While the snapshot still protects them.
        Ok(Some((store.leases.take(snapshot.sequence(), store.work.clone()), slot)))
    }

    /// A file and one of its slots, both of one moment.
    pub(crate) fn slot_of_file(
        &self,
        fid: Fid,
        index: SlotIndex,
    ) -> Result<(Arc<VnodeRecord>, Slot), VolumeError> {
        let snapshot = self.volume.store().kv.snapshot();
        let location = self.volume.location_at(&snapshot)?;
        let record = self.record_at(&snapshot, fid.vnode)?.filter(|record| record.unique == fid.unique);
        let record = record.ok_or(VolumeError::NoVnode)?;
        let rows = RowsTo { snapshot: &snapshot, depth: self.depth };
        let slot = rows.slot_row(location.group, &record, index, location.epoch)?;
        Ok((record, slot))
    }

    /// Where the copies of a chunk are, beside the place that references name.
    pub(crate) fn copies(&self, at: LocatedChunk) -> Result<Vec<LocatedChunk>, VolumeError> {
        let store = self.volume.store();
        if !store.has_copies.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        copies::of(&RowsTo { snapshot: &store.kv.snapshot(), depth: self.depth }, at)
    }

    /// The record as of a snapshot, which is cached.
    pub(crate) fn record_at(
        &self,
        snapshot: &Snapshot,
        vnode: VnodeId,
    ) -> Result<Option<Arc<VnodeRecord>>, VolumeError> {
        let location = self.volume.location_at(snapshot)?;
        let rows = RowsTo { snapshot, depth: self.depth };
        let Some(record) = rows.vnode_row(location.group, vnode, location.epoch)? else { return Ok(None) };
        let record = Arc::new(record);
        self.volume.store().cache.insert(self.volume.id(), record.clone(), snapshot.sequence());
        Ok(Some(record))
    }
}
