//! Registry of a file server's drives, a file of its state directory: id, name, kind and settings of each, and which one
//! takes the new data of each partition.

use super::{BucketSettings, DrainOrder, DrivesError, RemoteSettings, TierOrder};
use crate::configuration::inventory::{DRIVES, Inventory};
use afs_drive::DriveId;
use afs_files::{Syntax, Versioned};
use afs_wire::ids::{PartitionId, VolumeId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Format of a registry of which no drive has another key than its first one: older programs read it too.
const FORMAT: u32 = 1;
/// Format from the first change of a key on.
const FORMAT_OF_KEYS: u32 = 2;
/// Longest name of a drive, in bytes.
const NAME_MAX: usize = 64;
/// The name of the disk beside the index, which every partition has.
pub(super) const LOCAL: &str = "local";

/// The drives of a file server beside its disks. Has keys in it: only the owner may read the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    format: u32,
    /// The id of the next drive: none is used twice, because references name their drive by it.
    next_id: u32,
    /// Partitions whose new data go to a drive other than their own disk, by number.
    #[serde(default)]
    in_use: BTreeMap<String, u32>,
    /// Drives that take copies of a partition's data, by its number. A program of before copies refuses the registry while
    /// there are some.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    copies: BTreeMap<String, Vec<u32>>,
    /// Drives to be drained, by id. A program of before drains refuses the registry while there is one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    draining: BTreeMap<String, DrainOrder>,
    /// Volumes whose old, large files are moved to a drive, by number. A program of before tiers refuses the registry while there
    /// is one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tiers: BTreeMap<String, TierOrder>,
    /// The drives.
    #[serde(default, rename = "drive")]
    pub(super) drives: Vec<DriveEntry>,
}

/// A drive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DriveEntry {
    /// Its id in the references of this file server.
    pub id: u32,
    /// Its name here.
    pub name: String,
    /// Whether it was given up: it will not come back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// What it is.
    #[serde(flatten)]
    pub kind: DriveKind,
}

/// The kinds of drives, each with its settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum DriveKind {
    /// The daemon of `andrew drive serve` on another host.
    Remote(RemoteSettings),
    /// A bucket of an object store.
    Bucket(BucketSettings),
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            format: FORMAT,
            next_id: 1,
            in_use: BTreeMap::new(),
            copies: BTreeMap::new(),
            draining: BTreeMap::new(),
            tiers: BTreeMap::new(),
            drives: Vec::new(),
        }
    }
}

impl Versioned for Registry {
    const SYNTAX: Syntax = Syntax::Toml;
    const FORMATS: RangeInclusive<u32> = FORMAT..=FORMAT_OF_KEYS;
    const IS_SECRET: bool = true;
    const REMEDY: &'static str =
        "put a good copy back: it has the keys of the drives, without which their data cannot be read";
}

fn path(state: &Path) -> PathBuf {
    state.join(DRIVES)
}

impl Registry {
    /// Reads the registry of a state directory; an empty one if there is none.
    ///
    /// # Errors
    /// Others may read it, or it is damaged or of a newer version.
    pub fn read(state: &Path) -> Result<Self, DrivesError> {
        Ok(Self::read_file(&path(state))?.unwrap_or_default())
    }

    /// Replaces the registry of a state directory.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn write(&self, state: &Path) -> Result<(), DrivesError> {
        let written = Self { format: self.format_needed(), ..self.clone() };
        Inventory::replacing(state, DRIVES, || Ok(written.write_file(&path(state))?))
    }

    fn format_needed(&self) -> u32 {
        let is_later = |entry: &DriveEntry| matches!(&entry.kind, DriveKind::Remote(settings) if settings.has_later_keys());
        if self.drives.iter().any(is_later) { FORMAT_OF_KEYS } else { FORMAT }
    }

    /// The drives.
    pub fn drives(&self) -> &[DriveEntry] {
        &self.drives
    }

    /// The drive of a name.
    ///
    /// # Errors
    /// [`DrivesError::Unknown`].
    pub fn find(&self, name: &str) -> Result<&DriveEntry, DrivesError> {
        let found = self.drives.iter().find(|entry| entry.name == name);
        found.ok_or_else(|| DrivesError::Unknown(name.to_owned()))
    }

    /// The host of a drive, or the address of its object store; `None` is this host.
    pub(super) fn host(&self, drive: DriveId) -> Option<String> {
        let entry = self.drives.iter().find(|entry| entry.id == drive.0)?;
        match &entry.kind {
            DriveKind::Remote(settings) => {
                let host = settings.address.ip().to_canonical();
                (!host.is_loopback()).then(|| host.to_string())
            }
            DriveKind::Bucket(settings) => Some(settings.place.endpoint.clone()),
        }
    }

    /// Adds a drive, with an id that no other drive had before. Nothing is written yet.
    ///
    /// # Errors
    /// [`DrivesError::Name`].
    pub fn add(&mut self, name: &str, kind: DriveKind) -> Result<DriveEntry, DrivesError> {
        check_name(name)?;
        if self.find(name).is_ok() {
            return Err(DrivesError::Name(name.to_owned(), "there is one of this name"));
        }
        let entry = DriveEntry { id: self.next_id, name: name.to_owned(), lost: false, kind };
        self.next_id += 1;
        self.drives.push(entry.clone());
        Ok(entry)
    }

    /// Exchanges the settings of a drive.
    pub(super) fn set_kind(&mut self, id: u32, kind: DriveKind) {
        self.drives.iter_mut().filter(|entry| entry.id == id).for_each(|entry| entry.kind = kind.clone());
    }

    /// Gives a drive up, or no longer.
    pub fn set_lost(&mut self, id: u32, lost: bool) {
        self.drives.iter_mut().filter(|entry| entry.id == id).for_each(|entry| entry.lost = lost);
    }

    /// Removes a drive.
    pub fn remove(&mut self, id: u32) {
        self.drives.retain(|entry| entry.id != id);
        self.in_use.retain(|_, used| *used != id);
        self.draining.remove(&id.to_string());
    }

    /// The drives to be drained.
    pub fn draining(&self) -> impl Iterator<Item = (DriveId, DrainOrder)> {
        self.draining.iter().filter_map(|(id, order)| Some((DriveId(id.parse().ok()?), *order)))
    }

    /// Orders a drive to be drained, or no longer.
    pub fn set_draining(&mut self, drive: DriveId, order: Option<DrainOrder>) {
        let key = drive.0.to_string();
        match order {
            Some(order) => _ = self.draining.insert(key, order),
            None => _ = self.draining.remove(&key),
        }
    }

    /// The volumes whose old, large files are moved.
    pub fn tiers(&self) -> impl Iterator<Item = (VolumeId, TierOrder)> {
        self.tiers.iter().filter_map(|(id, order)| Some((VolumeId(id.parse().ok()?), *order)))
    }

    /// Orders files of a volume to be moved, or no longer.
    pub fn set_tier(&mut self, volume: VolumeId, order: Option<TierOrder>) {
        let key = volume.0.to_string();
        match order {
            Some(order) => _ = self.tiers.insert(key, order),
            None => _ = self.tiers.remove(&key),
        }
    }

    /// The drive that takes the new data of a partition.
    pub fn in_use(&self, partition: PartitionId) -> DriveId {
        DriveId(self.in_use.get(&partition.0.to_string()).copied().unwrap_or(DriveId::OWN.0))
    }

    /// The drive that takes the new data of a partition, and those that take copies.
    pub fn drives_of(&self, partition: PartitionId) -> Vec<DriveId> {
        let copies = self.copies.get(&partition.0.to_string()).into_iter().flatten().copied().map(DriveId);
        [self.in_use(partition)].into_iter().chain(copies).collect()
    }

    /// Chooses the drives that take copies.
    pub fn set_copies(&mut self, partition: PartitionId, drives: &[DriveId]) {
        let key = partition.0.to_string();
        match drives {
            [] => _ = self.copies.remove(&key),
            _ => _ = self.copies.insert(key, drives.iter().map(|drive| drive.0).collect()),
        }
    }

    /// Chooses it.
    pub fn set_in_use(&mut self, partition: PartitionId, drive: DriveId) {
        let key = partition.0.to_string();
        match drive {
            DriveId::OWN => _ = self.in_use.remove(&key),
            DriveId(id) => _ = self.in_use.insert(key, id),
        }
    }
}

fn check_name(name: &str) -> Result<(), DrivesError> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if name.is_empty() || name.len() > NAME_MAX || !is_plain {
        return Err(DrivesError::Name(name.to_owned(), "use up to 64 letters, digits and -_."));
    }
    if name == LOCAL {
        return Err(DrivesError::Name(name.to_owned(), "it stands for the disk beside the index"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drives::keys::{KeyRing, KeyText};

    fn remote() -> DriveKind {
        let address = "192.0.2.1:7010".parse().unwrap();
        let settings = RemoteSettings::new(address, "ab".repeat(32), KeyText::of(&[0x77; 32]), 5);
        DriveKind::Remote(RemoteSettings { drive: "d1".to_owned(), ..settings })
    }

    #[test]
    fn a_registry_is_kept_with_its_keys_secret_and_no_id_is_used_twice() {
        let state = tempfile::tempdir().unwrap();
        let mut registry = Registry::read(state.path()).unwrap();
        let first = registry.add("one", remote()).unwrap();
        registry.set_in_use(PartitionId(0), DriveId(first.id));
        registry.write(state.path()).unwrap();
        let mut registry = Registry::read(state.path()).unwrap();
        assert_eq!(
            (registry.in_use(PartitionId(0)), registry.in_use(PartitionId(1))),
            (DriveId(1), DriveId::OWN)
        );
        assert!(
            crate::drives::opened::Opened::open(
                registry.find("one").unwrap(),
                (&afs_env::Parts::inline(), &KeyRing::default()),
                PartitionId(0),
                false
            )
            .is_ok()
        );
        assert!(registry.add("one", remote()).is_err() && registry.add("local", remote()).is_err());
        assert!(registry.add("a b", remote()).is_err());
        registry.remove(first.id);
        assert_eq!(registry.in_use(PartitionId(0)), DriveId::OWN);
        assert_eq!(registry.add("one", remote()).unwrap().id, 2, "references may name the first one");
        let shown = format!("{registry:?}");
        assert!(!shown.contains("d3d3"), "{shown}");
        let text = || std::fs::read_to_string(path(state.path())).unwrap();
        registry.write(state.path()).unwrap();
        assert!(text().contains("\nformat = 1\n") && !text().contains("epoch"), "older programs read it");
        let DriveKind::Remote(settings) = &mut registry.drives[0].kind else { panic!() };
        settings.prepare_next(&*afs_env::Parts::inline());
        registry.write(state.path()).unwrap();
        assert!(text().contains("\nformat = 2\n"));
        let mut registry = Registry::read(state.path()).unwrap();
        let DriveKind::Remote(settings) = &mut registry.drives[0].kind else { panic!() };
        settings.take_next(2, 9);
        assert_eq!((settings.key().unwrap().epoch().0, settings.since), (2, Some(9)));
        registry.write(state.path()).unwrap();
        assert!(text().contains("epoch = 2") && !text().contains("next ="));
        std::fs::write(path(state.path()), "format = 9\nnext_id = 1\n").unwrap();
        assert!(Registry::read(state.path()).unwrap_err().to_string().contains("format 9"));
    }
}
