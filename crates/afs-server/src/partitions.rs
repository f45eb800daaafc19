//! Map from the partitions of a server to their volume stores.

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_volume::{Volume, VolumeStore};
use afs_wire::ids::{PartitionId, VolumeId};

/// The volume stores of a server by partition. Cheap to clone.
#[derive(Clone)]
pub struct Partitions {
    stores: Arc<BTreeMap<PartitionId, VolumeStore>>,
}

impl Partitions {
    /// A map of these stores.
    pub fn new(stores: impl IntoIterator<Item = (PartitionId, VolumeStore)>) -> Self {
        Partitions { stores: Arc::new(stores.into_iter().collect()) }
    }

    /// A map with one partition, `/vicepa`.
    pub fn one(store: VolumeStore) -> Self {
        Partitions::new([(PartitionId(0), store)])
    }

    /// The store of a partition.
    pub fn store(&self, partition: PartitionId) -> Option<&VolumeStore> {
        self.stores.get(&partition)
    }

    /// All partitions in ascending order.
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
