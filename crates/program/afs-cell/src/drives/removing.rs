//! Drives on which nothing is, and that nothing uses: they leave the stores and the registry.

use super::attached::Inner;
use super::{DriveAnswer, DriveEntry, DriveKind, DrivesError};
use afs_drive::DriveId;

impl Inner {
    /// Removes a drive, unless new data, copies or files of a volume go there, or files are on it.
    pub(super) async fn remove(&self, name: &str) -> Result<DriveAnswer, DrivesError> {
        let mut registry = self.registry.lock().clone();
        let entry = registry.find(name)?.clone();
        let id = DriveId(entry.id);
        self.takes_no_tier(&registry, name, id)?;
        for (partition, store) in self.partitions.iter() {
            let in_use = |why: String| DrivesError::InUse(name.to_owned(), format!("{partition}: {why}"));
            if store.drives_in_use().contains(&id) {
                return Err(in_use("new data or copies go there".to_owned()));
            }
            if store.has_chunks_on(id).map_err(|error| in_use(error.to_string()))? {
                return Err(in_use(format!(
                    "files are on it, or wait for their discard; `andrew drive drain {name}` moves them"
                )));
            }
        }
        for (_, store) in self.partitions.iter() {
            // A drive that was never attached is not known to the store.
            if let Err(error @ afs_volume::VolumeError::Busy) = store.remove_drive(id) {
                return Err(DrivesError::InUse(name.to_owned(), error.to_string()));
            }
        }
        self.partitions.remove_direct(id);
        registry.remove(id.0);
        self.keep(registry)?;
        self.keys.remove(id.0);
        self.drains.cancel(id);
        Ok(DriveAnswer::Removed { left: self.withdraw(&entry).await })
    }

    /// Closes a drive of which nothing is needed any more. Returns why something of it remains in a bucket.
    async fn withdraw(&self, entry: &DriveEntry) -> Option<String> {
        let mut left = None;
        for (partition, _) in self.partitions.iter() {
            let opened = self.opened.lock().remove(&(DriveId(entry.id), partition));
            self.sweeping.lock().remove(&(DriveId(entry.id), partition));
            if let DriveKind::Bucket(settings) = &entry.kind
                && let Err(why) = settings.withdraw(opened, &self.env, &entry.name, partition).await
            {
                tracing::warn!(
                    drive = entry.name,
                    why,
                    "objects of a drive that was removed remain in its bucket"
                );
                left = Some(why);
            }
        }
        left
    }
}
