//! The read-write volumes of this host, for their comparison with the location database.

use afs_admin::{HeldVolume, HeldVolumes, ServerPartition};
use afs_db::ProtectionDb;
use afs_rpc::BoxFuture;
use afs_server::{ReadWriteVolume, VolumeServer, VolumeStates};
use std::sync::Arc;

/// The volumes, their states, and the databases, whose version changes with each change of an entry.
pub(super) struct HeldHere {
    pub(super) volumes: Arc<VolumeServer>,
    pub(super) states: Arc<VolumeStates>,
    pub(super) databases: Arc<dyn ProtectionDb>,
}

impl HeldVolumes for HeldHere {
    fn held(&self) -> Vec<HeldVolume> {
        let held = self.volumes.read_write_volumes().into_iter();
        held.map(|ReadWriteVolume { volume, partition, fenced }| HeldVolume { volume, partition, fenced })
            .collect()
    }

    fn fence(self: Arc<Self>, held: HeldVolume, elsewhere: ServerPartition) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Err(code) = self.volumes.fence(here(held), &elsewhere.to_string()).await {
                tracing::error!(volume = %held.volume, %code, "a volume that is elsewhere cannot be taken off line");
            }
        })
    }

    fn lift(self: Arc<Self>, held: HeldVolume) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            match self.volumes.lift_fence(here(held)).await {
                Ok(()) => {
                    tracing::info!(volume = %held.volume, "a volume that was elsewhere serves here again")
                }
                Err(code) => {
                    tracing::error!(volume = %held.volume, %code, "a volume cannot be put into service")
                }
            }
        })
    }

    fn settled(&self) {
        self.states.settle();
    }

    fn changed(&self) -> BoxFuture<'static, ()> {
        let (databases, version) = (self.databases.clone(), self.databases.version());
        Box::pin(async move { databases.changed(version).await })
    }
}

fn here(HeldVolume { volume, partition, fenced }: HeldVolume) -> ReadWriteVolume {
    ReadWriteVolume { volume, partition, fenced }
}
