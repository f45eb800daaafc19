//! Map from drive ids to the drives of a store, and the drive that takes new data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use afs_drive::{BoxFuture, Drive, DriveError, DriveId};
use afs_env::Instant;
use afs_env::sync::oneshot;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use crate::chunk_rows;
use crate::error::VolumeError;
use crate::held::Attached;
use crate::located::{COPIES_MAX, LocatedChunk};
use crate::store::VolumeStore;
use crate::targets::NamedDrive;

/// The drives of a store. The one beside its index is always there; others are added while it runs.
pub(crate) struct Drives {
    own: Arc<dyn Drive>,
    others: RwLock<Others>,
    /// Drives that did not answer, and when that was.
    pub(crate) away: Mutex<BTreeMap<DriveId, Instant>>,
}

struct Others {
    drives: BTreeMap<DriveId, Attached>,
    /// The drive that takes new data, and those that take copies of them. Not empty.
    for_new_data: Vec<DriveId>,
}

impl Drives {
    pub(crate) fn new(own: Arc<dyn Drive>) -> Self {
        let others = Others { drives: BTreeMap::new(), for_new_data: vec![DriveId::OWN] };
        Self { own, others: RwLock::new(others), away: Mutex::default() }
    }

    /// The drive beside the index.
    pub(crate) fn own(&self) -> &Arc<dyn Drive> {
        &self.own
    }

    /// The first drive for new data.
    pub(crate) fn for_new_data(&self) -> NamedDrive {
        let others = self.others.read();
        let first = others.for_new_data.first();
        match first.and_then(|id| others.drives.get_key_value(id)) {
            Some((id, drive)) => (*id, drive.handle()),
            None => (DriveId::OWN, self.own.clone()),
        }
    }

    /// The drives for new data, in their order. Not empty.
    pub(crate) fn list(&self) -> Vec<NamedDrive> {
        let others = self.others.read();
        let named = |id: &DriveId| match *id {
            DriveId::OWN => Some((DriveId::OWN, self.own.clone())),
            _ => others.drives.get_key_value(id).map(|(id, drive)| (*id, drive.handle())),
        };
        let list: Vec<_> = others.for_new_data.iter().filter_map(named).collect();
        if list.is_empty() { vec![(DriveId::OWN, self.own.clone())] } else { list }
    }

    /// The drive with an id.
    ///
    /// # Errors
    /// `UnknownDrive` if a row names a drive that the store does not have.
    pub(crate) fn get(&self, id: DriveId) -> Result<Arc<dyn Drive>, VolumeError> {
        match id {
            DriveId::OWN => Ok(self.own.clone()),
            _ => {
                let others = self.others.read();
                others.drives.get(&id).map(Attached::handle).ok_or(VolumeError::UnknownDrive { drive: id })
            }
        }
    }

    /// Completes when all who have the drive now have dropped it; `None` for the drive beside the index.
    pub(crate) fn end_of_handles(&self, id: DriveId) -> Option<oneshot::Receiver<()>> {
        self.others.write().drives.get_mut(&id).map(Attached::begin_time)
    }

    /// Starts to read a part of a chunk.
    pub(crate) fn read(
        &self,
        located: LocatedChunk,
        range: std::ops::Range<u32>,
    ) -> Result<BoxFuture<Result<Bytes, DriveError>>, VolumeError> {
        Ok(self.get(located.drive)?.read(located.chunk, range))
    }
}

impl Others {
    /// Whether a store in progress, or new data that are not part of a file yet, hold the drive.
    fn is_in_use(&self, id: DriveId) -> bool {
        self.drives.get(&id).is_some_and(Attached::is_held) || self.for_new_data.contains(&id)
    }
}

impl VolumeStore {
    /// Adds a drive, which continues after the last chunk that the store has on it. To be called before anything of the
    /// store is read; [`VolumeStore::sweep_drive`] frees what crashes left on it.
    ///
    /// # Errors
    /// `Invalid` for the id of a drive that the store has; errors of the index.
    pub fn add_drive(&self, id: DriveId, drive: Arc<dyn Drive>) -> Result<(), VolumeError> {
        if self.store.drives.get(id).is_ok() {
            return Err(VolumeError::Invalid);
        }
        if let Some(last) = chunk_rows::last_chunk(&self.store.kv, id)? {
            drive.continue_after(last);
        }
        self.store.use_when_back(id, &*drive);
        self.store.drives.others.write().drives.insert(id, Attached::new(drive));
        self.store.retry_discards();
        Ok(())
    }

    /// Exchanges a drive for another one with the same chunks, or for a [`LostDrive`](afs_drive::LostDrive) if none has them any
    /// longer: chunks are read from their copies then, and a relocation moves them from there.
    ///
    /// # Errors
    /// `Busy` while new data or copies go to the drive; `UnknownDrive`; errors of the index.
    pub fn replace_drive(&self, id: DriveId, drive: Arc<dyn Drive>) -> Result<(), VolumeError> {
        if let Some(last) = chunk_rows::last_chunk(&self.store.kv, id)? {
            drive.continue_after(last);
        }
        self.store.use_when_back(id, &*drive);
        {
            let mut others = self.store.drives.others.write();
            if others.for_new_data.contains(&id) {
                return Err(VolumeError::Busy);
            }
            *others.drives.get_mut(&id).ok_or(VolumeError::UnknownDrive { drive: id })? =
                Attached::new(drive);
        }
        self.store.drives.away.lock().remove(&id);
        self.store.retry_discards();
        Ok(())
    }

    /// Writes new data to a drive from now on. What is stored stays where it is.
    ///
    /// # Errors
    /// `UnknownDrive`.
    pub fn use_drive(&self, id: DriveId) -> Result<(), VolumeError> {
        self.use_drives(&[id])
    }

    /// Writes new data to the first of some drives from now on, and has [`VolumeStore::rebuild_step`] make copies of all data on
    /// the others; where the placement of a volume says so, data go to several of them at once. What is stored stays where it is, and
    /// copies on other drives stay too.
    ///
    /// # Errors
    /// `Invalid` for no drives, more than [`COPIES_MAX`], or one twice; `UnknownDrive`.
    pub fn use_drives(&self, ids: &[DriveId]) -> Result<(), VolumeError> {
        let different: BTreeSet<_> = ids.iter().collect();
        if ids.is_empty() || ids.len() > COPIES_MAX || different.len() < ids.len() {
            return Err(VolumeError::Invalid);
        }
        for id in ids {
            self.store.drives.get(*id)?;
        }
        self.store.drives.others.write().for_new_data = ids.to_vec();
        Ok(())
    }

    /// The drive that takes new data, and those that take copies.
    pub fn drives_in_use(&self) -> Vec<DriveId> {
        self.store.drives.others.read().for_new_data.clone()
    }

    /// The drive that takes new data.
    pub fn drive_in_use(&self) -> DriveId {
        self.store.drives.for_new_data().0
    }

    /// Whether the store has a chunk on a drive, one that is to be discarded included.
    ///
    /// # Errors
    /// Errors of the index.
    pub fn has_chunks_on(&self, id: DriveId) -> Result<bool, VolumeError> {
        Ok(chunk_rows::last_chunk(&self.store.kv, id)?.is_some())
    }

    /// Removes a drive on which the store has nothing.
    ///
    /// # Errors
    /// `Busy` if it takes new data, a store to it is in progress, or a chunk is on it; `UnknownDrive`.
    pub fn remove_drive(&self, id: DriveId) -> Result<(), VolumeError> {
        if self.store.drives.others.read().is_in_use(id) {
            return Err(VolumeError::Busy);
        }
        // A drive that takes no new data gets no first chunk after this.
        if self.has_chunks_on(id)? {
            return Err(VolumeError::Busy);
        }
        let removed = self.store.drives.others.write().drives.remove(&id);
        removed.map(drop).ok_or(VolumeError::UnknownDrive { drive: id })
    }
}
