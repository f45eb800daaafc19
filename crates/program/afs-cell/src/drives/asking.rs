//! Questions of the owner: how the drives are, and whether the chunks on one are whole.

use super::attached::Inner;
use super::opened::Opened;
use super::registry::LOCAL;
use super::{DriveAnswer, DriveCheck, DriveEntry, DriveKeyLine, DriveKind, DriveLine, DrivesError};
use afs_drive::DriveId;
use afs_env::future::join_all;

impl Inner {
    /// A line for each drive, the own disks first; waits for those on other hosts.
    pub(super) async fn list(&self) -> Vec<DriveLine> {
        let registry = self.registry.lock().clone();
        let mut lines = vec![self.line(LOCAL, DriveId::OWN, "disk", String::new())];
        lines.extend(join_all(registry.drives().iter().map(|entry| self.asked(entry))).await);
        lines
    }

    fn line(&self, name: &str, id: DriveId, kind: &str, at: String) -> DriveLine {
        let using = self.partitions.iter().filter(|(_, store)| store.drive_in_use() == id);
        let partitions = using.map(|(partition, _)| partition.to_string()).collect();
        let missing = self
            .partitions
            .iter()
            .filter(|(_, store)| store.drive_in_use() == id)
            .map(|(partition, _)| partition);
        let missing_copies = missing.map(|partition| self.rebuilder.missing(partition)).sum();
        let copying = self
            .partitions
            .iter()
            .filter(|(_, store)| store.drives_in_use().iter().skip(1).any(|drive| *drive == id));
        let copies = copying.map(|(partition, _)| partition.to_string()).collect();
        let (name, kind) = (name.to_owned(), kind.to_owned());
        DriveLine {
            name,
            id: id.0,
            kind,
            at,
            partitions,
            copies,
            missing_copies,
            free: None,
            total: None,
            problem: None,
            key: None,
            drain: self.drains.line(id),
        }
    }

    /// The line of a drive that was asked how it is.
    async fn asked(&self, entry: &DriveEntry) -> DriveLine {
        let id = DriveId(entry.id);
        let (kind, at) = match &entry.kind {
            DriveKind::Remote(settings) => ("remote", settings.address.to_string()),
            DriveKind::Bucket(settings) => ("bucket", settings.place.to_string()),
        };
        let mut line = self.line(&entry.name, id, kind, at);
        line.key = self.key_line(entry);
        if entry.lost {
            line.problem = Some("it was given up as lost".to_owned());
            return line;
        }
        let Some((partition, _)) = self.partitions.iter().next() else { return line };
        let opened = self.opened.lock().get(&(id, partition)).cloned();
        let usage =
            match opened.map_or_else(|| Opened::open(entry, (&self.env, &self.keys), partition, true), Ok) {
                Ok(opened) => opened.look().await.map_err(|error| error.to_string()),
                Err(why) => Err(why),
            };
        match usage {
            Ok(usage) => (line.free, line.total) = (usage.map(|u| u.free), usage.map(|u| u.total)),
            Err(why) => line.problem = Some(why),
        }
        line
    }

    fn key_line(&self, entry: &DriveEntry) -> Option<DriveKeyLine> {
        let DriveKind::Remote(settings) = &entry.kind else { return None };
        let (now, changing) = (self.env.wall().secs, settings.is_changing());
        let age = settings.since.map(|since| now.saturating_sub(since));
        Some(DriveKeyLine { epoch: settings.epoch, age, changing })
    }

    /// Reads all chunks that the partitions have on a drive.
    pub(super) async fn check(&self, name: &str) -> Result<DriveAnswer, DrivesError> {
        let id = self.id(name)?;
        let mut all = DriveCheck::default();
        for (_, store) in self.partitions.iter() {
            let checked =
                store.check_drive(id).await.map_err(|error| DrivesError::Store(error.to_string()))?;
            all.chunks += checked.chunks;
            all.bytes += checked.bytes;
            all.bad += checked.bad;
            all.first_bad.extend(checked.first_bad);
        }
        Ok(DriveAnswer::Checked(all))
    }
}
