//! Choice of the drives on which new data and their copies go.

use super::attached::Inner;
use super::{DriveAnswer, DrivesError, Registry};
use afs_drive::DriveId;
use afs_volume::COPIES_MAX;
use afs_wire::ids::PartitionId;

impl Inner {
    /// Has the new data of one partition, or of all, go to a drive, and copies of them to others.
    pub(super) fn use_drive(
        &self,
        name: &str,
        partition: Option<&str>,
        copies: &[String],
        same_host: bool,
    ) -> Result<DriveAnswer, DrivesError> {
        let mut registry = self.registry.lock().clone();
        let id = self.id(name)?;
        let copies = copies.iter().map(|name| self.id(name)).collect::<Result<Vec<_>, _>>()?;
        let ids: Vec<_> = [id].into_iter().chain(copies.iter().copied()).collect();
        ids.iter().try_for_each(|id| self.is_there(*id))?;
        check_copies(&registry, &ids, same_host)?;
        let chosen = partition
            .map(|text| text.parse::<PartitionId>().map_err(|_| DrivesError::NoPartition(text.to_owned())));
        let chosen = chosen.transpose()?;
        if let Some(id) = chosen.filter(|id| self.partitions.store(*id).is_none()) {
            return Err(DrivesError::NoPartition(id.to_string()));
        }
        if registry.draining().any(|(draining, _)| ids.contains(&draining)) {
            let why = format!("is drained; `andrew drive drain {name} --cancel` ends that");
            return Err(DrivesError::Drain(name.to_owned(), why));
        }
        let wanted = || self.partitions.iter().filter(|(id, _)| chosen.is_none_or(|chosen| chosen == *id));
        for (partition, _) in wanted() {
            registry.set_in_use(partition, id);
            registry.set_copies(partition, &copies);
        }
        for (_, store) in wanted() {
            store.use_drives(&ids).map_err(|error| DrivesError::Store(error.to_string()))?;
        }
        self.keep(registry)?;
        self.rebuilder.wake();
        Ok(DriveAnswer::Done)
    }
}

/// Whether each of some drives may have copies of the data of the others.
fn check_copies(registry: &Registry, ids: &[DriveId], same_host: bool) -> Result<(), DrivesError> {
    let refused = |why: &str| Err(DrivesError::Copies(why.to_owned()));
    if ids.len() > COPIES_MAX {
        return refused("data are on three drives at most: two take copies");
    }
    for (at, one) in ids.iter().enumerate() {
        for other in ids.iter().skip(at + 1) {
            if one == other {
                return refused("a drive cannot have a copy of its own data");
            }
            if !same_host && registry.host(*one) == registry.host(*other) {
                return refused(
                    "two of these drives are on one host, and would be lost together; --same-host permits it",
                );
            }
        }
    }
    Ok(())
}
