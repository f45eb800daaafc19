//! Admission of partitions: each has an identity, by which a start knows a disk that is missing, or another's, and does not fill its place.

use crate::configuration::inventory::Inventory;
use crate::configuration::options::PartitionDirectory;
use crate::configuration::partition_identity;
use crate::error::CellResult;
use crate::servers::StartError;
use crate::servers::error::cannot_open;
use afs_own as own;
use afs_wire::ids::Uuid;
use std::path::{Path, PathBuf};

/// The rule at the start of a server.
pub(super) struct Admission {
    inventory: Inventory,
    state: PathBuf,
    /// An earlier start has admitted a partition.
    had_partitions: bool,
    /// An earlier version of the program has used the state directory: its partitions have no identity.
    is_upgrade: bool,
}

impl Admission {
    /// Reads the inventory of a state directory, which is written if there was nothing before.
    ///
    /// # Errors
    /// It cannot be used, or a file that was there is missing.
    pub(super) fn begin(state: &Path, was_in_use: bool) -> CellResult<Self> {
        let kept = Inventory::read(state)?;
        let is_upgrade = kept.is_none() && was_in_use;
        if kept.is_none() && !was_in_use {
            // A start that fails later is no upgrade the next time.
            Inventory::default().write(state)?;
        }
        let inventory = kept.unwrap_or_default();
        if let Some(missing) = inventory.missing(state) {
            return Err(StartError::Missing { state: state.to_owned(), missing }.into());
        }
        let had_partitions = inventory.has_partitions();
        Ok(Self { inventory, state: state.to_owned(), had_partitions, is_upgrade })
    }

    /// Whether any partition was admitted by an earlier start.
    pub(super) fn has_had_partitions(&self) -> bool {
        self.had_partitions
    }

    /// Admits the partition in a directory, or says why its place is left alone. A new one gets its identity; `new` makes one.
    pub(super) fn admit(
        &mut self,
        partition: &PartitionDirectory,
        new: impl FnOnce() -> Uuid,
    ) -> Result<(), StartError> {
        let PartitionDirectory { id: place, path } = partition;
        let refused = |found: String| StartError::NotThePartition {
            path: path.clone(),
            found,
            place: *place,
            state: self.state.clone(),
        };
        let known = self.inventory.partition(*place);
        if path.exists() {
            own::given_directory(path).map_err(|error| cannot_open(path, error))?;
        }
        let found = partition_identity::read(path).map_err(|error| cannot_open(path, error))?;
        match (known, found) {
            (Some(known), Some(found)) if known == found => Ok(()),
            (Some(known), Some(found)) => Err(refused(format!("has partition {found}, and not {known}"))),
            (Some(known), None) => Err(refused(format!("is not there, or has no partition {known}"))),
            (None, Some(found)) => match self.inventory.place(found) {
                Some(other) => Err(refused(format!("has the partition that is {other}, or a copy of it"))),
                None => {
                    self.inventory.add_partition(*place, found);
                    Ok(())
                }
            },
            (None, None) if self.is_upgrade && !path.join("index").exists() => {
                self.inventory.add_partition(*place, new());
                Err(refused("is not there, or has no partition".to_owned()))
            }
            (None, None) => self.make(partition, new()),
        }
    }

    /// Gives a new partition, or one of an earlier version, its identity.
    fn make(&mut self, partition: &PartitionDirectory, id: Uuid) -> Result<(), StartError> {
        let PartitionDirectory { id: place, path } = partition;
        let is_new = !path.join("index").exists();
        own::given_directory(path).map_err(|error| cannot_open(path, error))?;
        match partition_identity::write(path, id) {
            Ok(()) => self.inventory.add_partition(*place, id),
            Err(error) if is_new => return Err(cannot_open(path, error)),
            // It serves on a full disk as before; the next start tries again.
            Err(error) => tracing::warn!(partition = %place, %error, "the partition has no identity yet"),
        }
        Ok(())
    }

    /// When all is open: writes what is there now, for the next start.
    pub(super) fn end(mut self) {
        self.inventory.note_files(&self.state);
        let kept = Inventory::read(&self.state).ok().flatten();
        if kept.as_ref() == Some(&self.inventory) {
            return;
        }
        self.inventory.keep(&self.state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_wire::ids::PartitionId;
    use std::fs;

    struct Host(tempfile::TempDir);

    impl Host {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn disk(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        /// One start; the error of the partition.
        fn start(&self, was_in_use: bool, place: u8, name: &str) -> Result<(), String> {
            let mut admission = Admission::begin(self.0.path(), was_in_use).map_err(|e| e.to_string())?;
            let partition = PartitionDirectory { id: PartitionId(place), path: self.disk(name) };
            // Each its own.
            let admitted = admission.admit(&partition, || Uuid([place + 1; 16]));
            admission.end();
            admitted.map_err(|error| error.to_string())
        }
    }

    #[test]
    fn a_new_partition_is_made_and_its_place_is_left_alone_when_it_is_gone() {
        let host = Host::new();
        host.start(false, 0, "a").unwrap();
        host.start(true, 0, "a").unwrap();
        // Added later.
        host.start(true, 1, "b").unwrap();
        fs::remove_dir_all(host.disk("b")).unwrap();
        let said = host.start(true, 1, "b").unwrap_err();
        assert!(said.contains("is not there") && said.contains("andrew store forget /vicepb"), "{said}");
        assert!(!host.disk("b").exists());
        fs::create_dir(host.disk("b")).unwrap();
        host.start(true, 1, "b").unwrap_err();
        assert_eq!(fs::read_dir(host.disk("b")).unwrap().count(), 0);
        host.start(true, 0, "a").unwrap();

        let mut inventory = Inventory::read(host.0.path()).unwrap().unwrap();
        assert!(inventory.forget("/vicepb"));
        inventory.write(host.0.path()).unwrap();
        host.start(true, 1, "b").unwrap();
    }

    #[test]
    fn another_s_partition_and_a_copy_are_refused_and_one_that_moved_here_is_taken() {
        let host = Host::new();
        host.start(false, 0, "a").unwrap();
        fs::create_dir(host.disk("moved")).unwrap();
        partition_identity::write(&host.disk("moved"), Uuid([9; 16])).unwrap();
        host.start(true, 1, "moved").unwrap();
        let said = host.start(true, 0, "moved").unwrap_err();
        assert!(said.contains(&Uuid([9; 16]).to_string()), "{said}");
        fs::create_dir(host.disk("copy")).unwrap();
        fs::copy(host.disk("a/partition.json"), host.disk("copy/partition.json")).unwrap();
        let said = host.start(true, 2, "copy").unwrap_err();
        assert!(said.contains("/vicepa"), "{said}");
        fs::write(host.disk("a/partition.json"), [0; 40]).unwrap();
        assert!(host.start(true, 0, "a").unwrap_err().contains("is damaged"));
    }

    #[test]
    fn an_upgrade_gives_identities_to_what_is_there_and_makes_nothing() {
        let host = Host::new();
        fs::create_dir_all(host.disk("a/index")).unwrap();
        let state = host.0.path();
        let partition = |place, name| PartitionDirectory { id: PartitionId(place), path: host.disk(name) };
        let mut admission = Admission::begin(state, true).unwrap();
        admission.admit(&partition(0, "a"), || Uuid([1; 16])).unwrap();
        admission.admit(&partition(1, "b"), || Uuid([2; 16])).unwrap_err();
        admission.end();
        assert!(host.disk("a/partition.json").exists() && !host.disk("b").exists());
        host.start(true, 0, "a").unwrap();
        host.start(true, 1, "b").unwrap_err();
    }
}
