//! One volume, as seen from outside a transaction.

use std::sync::Arc;

use afs_kv::Snapshot;
use afs_wire::ids::{DataVersion, Fid, VnodeId, VolumeId};
use parking_lot::RwLock;

use crate::data_reader::DataReader;
use crate::data_writer::DataWriter;
use crate::depth::Depth;
use crate::error::VolumeError;
use crate::header::VolumeHeader;
use crate::location::{Location, Locations};
use crate::record::VnodeRecord;
use crate::store::Store;
use crate::tx::VolumeTx;

/// A volume of a [`VolumeStore`](crate::VolumeStore). All reads see committed, durable state only.
pub struct Volume {
    id: VolumeId,
    store: Arc<Store>,
    shown: RwLock<Shown>,
}

struct Shown {
    header: Arc<VolumeHeader>,
    locations: Locations,
}

impl Volume {
    pub(crate) fn new(store: Arc<Store>, header: VolumeHeader) -> Arc<Self> {
        let (id, locations) = (header.id, Locations::new(Location::of(&header)));
        let shown = RwLock::new(Shown { header: Arc::new(header), locations });
        let volume = Arc::new(Self { id, store, shown });
        volume.store.register(&volume);
        volume
    }

    /// Its id.
    pub fn id(&self) -> VolumeId {
        self.id
    }

    /// Its header as of the last commit.
    pub fn header(&self) -> Arc<VolumeHeader> {
        self.shown.read().header.clone()
    }

    /// The oldest version all of whose bytes this version of a file is known to begin with.
    pub fn grown_since(&self, fid: Fid, version: DataVersion) -> DataVersion {
        self.store().growths.since(fid, version)
    }

    /// Publishes the header of a commit that readers are about to see; `None` says that the volume was
    /// deleted.
    pub(crate) fn show_header(&self, header: Option<VolumeHeader>, sequence: u64) {
        let mut shown = self.shown.write();
        shown.locations.set(header.as_ref().map(Location::of), sequence);
        if let Some(header) = header {
            shown.header = Arc::new(header);
        }
    }

    /// The location of the volume's rows in a snapshot.
    pub(crate) fn location_at(&self, snapshot: &Snapshot) -> Result<Location, VolumeError> {
        self.shown.read().locations.at(snapshot.sequence())
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// As [`Reads::vnode`](crate::Reads::vnode) at [`Depth::Disk`].
    pub fn vnode(self: &Arc<Self>, vnode: VnodeId) -> Result<Option<Arc<VnodeRecord>>, VolumeError> {
        self.reads(Depth::Disk).vnode(vnode)
    }

    /// As [`Reads::fetch`](crate::Reads::fetch) at [`Depth::Disk`].
    pub fn fetch(self: &Arc<Self>, fid: Fid) -> Result<Arc<VnodeRecord>, VolumeError> {
        self.reads(Depth::Disk).fetch(fid)
    }

    /// As [`Reads::data`](crate::Reads::data) at [`Depth::Disk`].
    pub fn read_data(self: &Arc<Self>, fid: Fid, position: u64, len: u64) -> Result<DataReader, VolumeError> {
        self.reads(Depth::Disk).data(fid, position, len)
    }

    /// Starts to take bytes for `position` of a file, for the drives that the volume's placement says.
    pub fn write_data(&self, position: u64) -> Result<DataWriter, VolumeError> {
        DataWriter::new(&self.store, self.header().placement, position)
    }

    /// Changes the volume. Resolves when the change is durable and visible; if the closure returns an error,
    /// nothing of it remains. Closures of one store run one after the other, many of them in one commit.
    ///
    /// # Errors
    /// [`VolumeError::ReadOnly`], without running the closure, if the volume is not read-write;
    /// [`VolumeError::Busy`] while it is being restored.
    pub async fn update<T, F>(self: &Arc<Self>, change: F) -> Result<T, VolumeError>
    where
        T: Send + 'static,
        F: FnOnce(&mut VolumeTx<'_, '_>) -> Result<T, VolumeError> + Send + 'static,
    {
        self.edit(move |tx| {
            tx.check_takes_changes()?;
            change(tx)
        })
        .await
    }

    /// As [`Volume::update`], for changes of the header, which volumes of any kind take.
    pub async fn edit<T, F>(self: &Arc<Self>, change: F) -> Result<T, VolumeError>
    where
        T: Send + 'static,
        F: FnOnce(&mut VolumeTx<'_, '_>) -> Result<T, VolumeError> + Send + 'static,
    {
        let (store, id) = (self.store.clone(), self.id);
        let result = self
            .store
            .kv
            .update(move |txn| {
                let mut tx = VolumeTx::begin(txn, &store, id)?;
                let answer = change(&mut tx)?;
                tx.finish()?;
                Ok(answer)
            })
            .await;
        Ok(result?)
    }
}
