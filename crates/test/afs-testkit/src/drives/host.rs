//! A drive on a host of its own, or beside the file server, whose power fails and which does to requests what a test says.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_datapath::capability::{DriveId as PathDrive, DriveKey, KeyEpoch, StoreNumber};
use afs_datapath::session::{Drive as Served, DriveLimits, Identity, Offer, accept};
use afs_remote::{ChunkStores, Run};
use afs_sim::disk::SimDisk;
use afs_sim::{NodeId, World};

use super::conduct::{Behaviour, Conduct, False, Staging};

/// A drive on a host.
pub struct DriveHost {
    /// The host.
    pub node: NodeId,
    /// What it serves in its present run.
    pub served: Arc<Served>,
    world: World,
    plan: HostPlan,
    disk: SimDisk,
    /// The number of the present run.
    run: u64,
    conduct: Arc<Behaviour>,
}

/// How the program of a drive is started.
#[derive(Clone)]
pub struct HostPlan {
    /// The number of the drive among those of its file server, from 0.
    pub number: u8,
    /// Of what its key is made.
    pub secret: u8,
    /// Where it listens.
    pub at: SocketAddr,
    /// Its identity for TLS; none: everything is in the clear.
    pub identity: Option<Identity>,
    /// The address of its file server.
    pub server: IpAddr,
}

impl HostPlan {
    /// The key of the drive, as it was made.
    #[must_use]
    pub fn key(&self) -> DriveKey {
        let drive = PathDrive(0xd1 + u128::from(self.number));
        DriveKey::new(drive, KeyEpoch(1), [self.secret; 32])
    }

    fn offer(&self) -> Offer {
        self.identity.clone().map_or_else(Offer::clear, Offer::tls)
    }
}

impl DriveHost {
    /// Starts a drive with an empty disk on a machine.
    #[must_use]
    pub fn start(world: &World, node: NodeId, plan: HostPlan) -> Self {
        let (disk, conduct, run) = (world.disk(node), Arc::default(), 1);
        let served = serve(world, node, &plan, &disk, run, &conduct);
        Self { node, served, world: world.clone(), plan, disk, run, conduct }
    }

    /// A power failure of the host, and the next start.
    pub fn restart(&mut self) {
        self.world.crash(self.node);
        self.world.restart(self.node);
        self.start_again();
    }

    /// The next start, after the host has come back.
    pub(super) fn start_again(&mut self) {
        self.run += 1;
        self.served = serve(&self.world, self.node, &self.plan, &self.disk, self.run, &self.conduct);
    }

    /// Sets what it does with reads of clients from now on.
    pub fn set_conduct(&self, conduct: Conduct) {
        *self.conduct.reads.lock() = conduct;
    }

    /// Sets what it does with stores of clients from now on.
    pub fn set_staging(&self, staging: Staging) {
        *self.conduct.staging.lock() = staging;
    }

    /// Whether the conduct is shown to the file server too, not to clients alone.
    pub fn set_to_all(&self, is_to_all: bool) {
        self.conduct.is_to_all.store(is_to_all, Ordering::Relaxed);
    }

    /// Does something when chunks are given to the file server next.
    pub fn when_chunks_are_given(&self, then: impl FnOnce() + Send + 'static) {
        *self.conduct.when_given.lock() = Some(Box::new(then));
    }

    /// How many requests to stage a chunk have come.
    #[must_use]
    pub fn staged(&self) -> u64 {
        self.conduct.staged.load(Ordering::Relaxed)
    }

    /// The disk with its chunks.
    #[must_use]
    pub fn disk(&self) -> &SimDisk {
        &self.disk
    }
}

/// A run of a drive.
fn serve(
    world: &World,
    node: NodeId,
    plan: &HostPlan,
    disk: &SimDisk,
    run: u64,
    conduct: &Arc<Behaviour>,
) -> Arc<Served> {
    let (env, disk) = (world.env(node), disk.clone());
    let open = move |store: StoreNumber| Ok(disk.segments(&format!("store-{}", store.0)));
    let stores = ChunkStores::new(env.clone(), Run(run), open);
    let revocations = stores.revocations();
    let (stores, conduct, server) = (Arc::new(stores), conduct.clone(), plan.server);
    let objects = False { stores, conduct, server, env: env.clone() };
    let served = Served::new(plan.key(), revocations, Arc::new(objects), DriveLimits::default());
    let listener = env.listen(plan.at).expect("the port is free");
    env.spawn(Box::pin(accept(env.clone(), listener, plan.offer(), served.clone())));
    served
}
