//! Fencing of the volumes of a simulated file server.

use std::future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use afs_admin::{Fencing, HeldVolume, HeldVolumes, ServerPartition};
use afs_rpc::BoxFuture;
use afs_server::{ReadWriteVolume, VolumeServer, VolumeStates};

use crate::{Server, administrator, net};

/// Port of the calls to the databases.
const PORT: u16 = 7009;

/// The volumes of a machine, in its present life. Of changes of the databases it hears nothing.
struct Held {
    volumes: Arc<VolumeServer>,
    states: Arc<VolumeStates>,
}

impl Server {
    /// Compares its read-write volumes with their entries, for as long as its present life. Changes of them wait for the first time.
    ///
    /// # Panics
    /// If the machine has no volume service.
    pub fn fence_volumes(&self, databases: Ipv4Addr) {
        let env = self.world.env(self.node);
        let volumes = self.processes(|processes| processes.volumes.as_ref()?.upgrade()).flatten();
        let volumes = volumes.expect("a volume service");
        self.states.unsettle();
        let rx = net::endpoint(&self.world, self.node, SocketAddr::new(self.address.into(), PORT));
        let held: Arc<dyn HeldVolumes> = Arc::new(Held { volumes, states: self.states.clone() });
        let admin = administrator::admin(&env, rx, databases, "fencing");
        env.spawn(Box::pin(Fencing::new(admin, self.address, Arc::downgrade(&held)).run()));
        net::keep(&env, held);
    }
}

impl HeldVolumes for Held {
    fn held(&self) -> Vec<HeldVolume> {
        let held = self.volumes.read_write_volumes().into_iter();
        held.map(|ReadWriteVolume { volume, partition, fenced }| HeldVolume { volume, partition, fenced })
            .collect()
    }

    fn fence(self: Arc<Self>, held: HeldVolume, elsewhere: ServerPartition) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.volumes.fence(here(held), &elsewhere.to_string()).await.expect("the volume is fenced");
        })
    }

    fn lift(self: Arc<Self>, held: HeldVolume) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.volumes.lift_fence(here(held)).await.expect("the fence is lifted") })
    }

    fn settled(&self) {
        self.states.settle();
    }

    fn changed(&self) -> BoxFuture<'static, ()> {
        Box::pin(future::pending())
    }
}

fn here(HeldVolume { volume, partition, fenced }: HeldVolume) -> ReadWriteVolume {
    ReadWriteVolume { volume, partition, fenced }
}
