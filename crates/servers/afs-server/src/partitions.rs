//! Map from the partitions of a server to their volume stores.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use afs_datapath::capability::DriveId as NamedDrive;
use afs_drive::{Addressed, DriveId};
use afs_remote::DirectDrive;
use afs_volume::{Volume, VolumeStore};
use afs_wire::ids::{PartitionId, VolumeId};
use parking_lot::RwLock;

use crate::partition_health::Health;

/// Drives of whose chunks clients may have addresses.
type Buckets = BTreeMap<(PartitionId, DriveId), Arc<dyn Addressed>>;

/// The volume stores of a server by partition. Cheap to clone.
#[derive(Clone)]
pub struct Partitions {
    stores: Arc<BTreeMap<PartitionId, VolumeStore>>,
    direct: Arc<RwLock<BTreeMap<(PartitionId, DriveId), DirectDrive>>>,
    addressed: Arc<RwLock<Buckets>>,
    health: Arc<Health>,
}

impl Partitions {
    /// A map of these stores.
    pub fn new(stores: impl IntoIterator<Item = (PartitionId, VolumeStore)>) -> Self {
        Partitions {
            stores: Arc::new(stores.into_iter().collect()),
            direct: Arc::default(),
            addressed: Arc::default(),
            health: Arc::default(),
        }
    }

    /// The same server with partitions that are off line, and why. One of them that is in the map stays on line.
    #[must_use]
    pub fn with_offline(mut self, offline: impl IntoIterator<Item = (PartitionId, String)>) -> Self {
        let offline = offline.into_iter().filter(|(partition, _)| !self.stores.contains_key(partition));
        let health = Health { offline: offline.collect(), ..Health::default() };
        self.health = Arc::new(health);
        self
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// The partitions of the server, those that are off line among them, in ascending order.
    pub fn ids(&self) -> impl Iterator<Item = PartitionId> {
        let all: BTreeSet<_> = self.stores.keys().chain(self.health.offline.keys()).copied().collect();
        all.into_iter()
    }

    /// A map with one partition, `/vicepa`.
    pub fn one(store: VolumeStore) -> Self {
        Partitions::new([(PartitionId(0), store)])
    }

    /// The store of a partition.
    pub fn store(&self, partition: PartitionId) -> Option<&VolumeStore> {
        self.stores.get(&partition)
    }

    /// Sends clients to a drive of a partition, where a volume's setting permits it.
    pub fn add_direct(&self, partition: PartitionId, drive: DriveId, direct: DirectDrive) {
        self.direct.write().insert((partition, drive), direct);
    }

    /// Sends no client to a drive any more. What was given out there ends within a minute.
    pub fn remove_direct(&self, drive: DriveId) {
        self.direct.write().retain(|(_, id), _| *id != drive);
        self.addressed.write().retain(|(_, id), _| *id != drive);
    }

    /// Gives clients addresses of chunks on a drive that is an object store, where a volume's setting permits it.
    pub fn add_addressed(&self, partition: PartitionId, drive: DriveId, addressed: Arc<dyn Addressed>) {
        self.addressed.write().insert((partition, drive), addressed);
    }

    /// A drive of whose chunks clients may have addresses.
    pub(crate) fn addressed(&self, partition: PartitionId, drive: DriveId) -> Option<Arc<dyn Addressed>> {
        self.addressed.read().get(&(partition, drive)).cloned()
    }

    /// A drive to which clients may go.
    pub(crate) fn direct(&self, partition: PartitionId, drive: DriveId) -> Option<DirectDrive> {
        self.direct.read().get(&(partition, drive)).cloned()
    }

    /// The one of a partition that has this id itself. There are few.
    pub(crate) fn direct_named(&self, partition: PartitionId, named: NamedDrive) -> Option<DirectDrive> {
        let direct = self.direct.read();
        let mut of_partition = direct.iter().filter(|((of, _), _)| *of == partition);
        let found = of_partition.find(|(_, direct)| direct.options().keys.present().drive() == named);
        found.map(|(_, direct)| direct.clone())
    }

    /// All of them.
    pub(crate) fn all_direct(&self) -> Vec<DirectDrive> {
        self.direct.read().values().cloned().collect()
    }

    /// The partitions that serve, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (PartitionId, &VolumeStore)> {
        self.stores.iter().map(|(partition, store)| (*partition, store))
    }

    /// A volume on any partition.
    pub fn volume(&self, id: VolumeId) -> Option<Arc<Volume>> {
        self.stores.values().find_map(|store| store.volume(id))
    }

    /// The partition of a volume.
    pub fn partition_of(&self, id: VolumeId) -> Option<PartitionId> {
        self.iter().find(|(_, store)| store.volume(id).is_some()).map(|(partition, _)| partition)
    }
}
