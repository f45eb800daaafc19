//! Drives that will not come back: their files are read from copies at once, and what was to be discarded there is forgotten.

use super::attached::Inner;
use super::opened::Opened;
use super::{DriveAnswer, DriveEntry, DrivesError};
use afs_drive::{DriveId, LostDrive};
use std::sync::Arc;

impl Inner {
    /// Gives a drive up. Its chunks stay in the index until they are drained from their copies, so that this can be taken back.
    pub(super) fn lose(&self, name: &str) -> Result<DriveAnswer, DrivesError> {
        let mut registry = self.registry.lock().clone();
        let id = DriveId(registry.find(name)?.id);
        if self.partitions.iter().any(|(_, store)| store.drives_in_use().contains(&id)) {
            let why = "takes new data or copies; let another drive take them first: andrew drive use NAME";
            return Err(DrivesError::Drain(name.to_owned(), why.to_owned()));
        }
        self.takes_no_tier(&registry, name, id)?;
        registry.set_lost(id.0, true);
        self.keep(registry)?;
        self.partitions.remove_direct(id);
        for (partition, store) in self.partitions.iter() {
            self.opened.lock().remove(&(id, partition));
            self.sweeping.lock().remove(&(id, partition));
            store
                .replace_drive(id, Arc::new(LostDrive))
                .map_err(|error| DrivesError::Store(error.to_string()))?;
        }
        Ok(DriveAnswer::Done)
    }

    /// Uses a drive again that had been given up.
    pub(super) fn find(&self, name: &str) -> Result<DriveAnswer, DrivesError> {
        let mut registry = self.registry.lock().clone();
        let entry = DriveEntry { lost: false, ..registry.find(name)?.clone() };
        registry.set_lost(entry.id, false);
        self.keep(registry)?;
        for (partition, store) in self.partitions.iter() {
            let opened =
                Opened::open(&entry, (&self.env, &self.keys), partition, true).map_err(DrivesError::Store)?;
            let replaced = store.replace_drive(DriveId(entry.id), opened.drive());
            replaced.map_err(|error| DrivesError::Store(error.to_string()))?;
            self.begin(&entry, partition, store, opened);
        }
        Ok(DriveAnswer::Done)
    }
}
