//! Drives of a server machine beside the one with its index: on other hosts, in a bucket, in files, in memory. They outlive its power
//! failures, and each of its lives has them again.

mod conduct;
mod host;
mod medium;
mod plan;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_bucket::{BucketDrive, Config};
use afs_datapath::capability::StoreNumber;
use afs_datapath::session::{Identity, Security};
use afs_drive::{DriveId, MemorySegments};
use afs_remote::{DriveKeys, RemoteOptions};
use afs_rpc::EnvRef;
use afs_server::Partitions;
use afs_sim::crash::{CrashDisk, Rng};
use afs_volume::{DriveCount, Placement, VolumeHeader, VolumeStore};
use afs_wire::ids::PartitionId;

pub use conduct::{Conduct, Staging};
pub use host::{DriveHost, HostPlan};
pub use plan::{BUCKET, DrivePlan, run_again_over};

use crate::{Server, SignedStore, StartError};
use medium::{Medium, OWNER};
use plan::{FILES, HERE, MEMORY};

/// The partition whose data go to them.
const PARTITION: PartitionId = PartitionId(0);
const STORE: StoreNumber = StoreNumber(3);
/// Where drives listen.
const PORT: u16 = 7010;
/// The secret of the keys of honest drives.
const SECRET: u8 = 7;
/// Virtual time that a change of a volume's settings may take.
const SETTING: Duration = Duration::from_secs(60);
const MEMORY_MAX: u64 = 1 << 30;

/// The drives that a machine has been given, and those of them that take new data.
#[derive(Default)]
pub(crate) struct Drives {
    known: Vec<(DriveId, Medium)>,
    in_use: Vec<DriveId>,
}

impl Drives {
    /// Gives them to the next life of the machine, whose power has failed.
    pub(crate) fn attach_again(&mut self, env: &EnvRef, partitions: &Partitions) -> Result<(), StartError> {
        for (id, medium) in &mut self.known {
            medium.lose_power();
            medium.attach(*id, env, partitions)?;
        }
        match (self.in_use.is_empty(), partitions.store(PARTITION)) {
            (false, Some(store)) => Ok(store.use_drives(&self.in_use)?),
            _ => Ok(()),
        }
    }
}

/// The address of a drive on a host of its own, from 0.
#[must_use]
pub fn drive_address(number: u8) -> SocketAddr {
    // Not among the addresses of servers and clients.
    SocketAddr::from((Ipv4Addr::new(10, 0, 1, 9 + number), PORT))
}

/// What a cell has of the drives of a plan.
#[derive(Default)]
pub struct Planned {
    /// The drives on other hosts.
    pub hosts: Vec<DriveHost>,
    /// The store of the bucket.
    pub store: Option<SignedStore>,
}

/// The server has been started.
impl Server {
    /// Adds the drives of a plan, and has the data of all volumes on them. With an identity those on other hosts have TLS.
    ///
    /// # Panics
    /// If it has such drives, or the settings cannot be made.
    pub fn use_plan(&self, plan: &DrivePlan, identity: Option<&Identity>) -> Planned {
        let mut planned = Planned::default();
        for id in plan.drives.iter().copied() {
            match id {
                DriveId::OWN => {}
                BUCKET => planned.store = Some(self.add_bucket()),
                FILES => self.add(id, Medium::Files(CrashDisk::new(), Rng(1))),
                MEMORY => self.add(id, Medium::Memory(MemorySegments::new(MEMORY_MAX))),
                HERE => self.add_beside(identity),
                DriveId(number) => planned.hosts.push(self.add_host(number as u8 - 1, identity, PORT).0),
            }
        }
        self.use_drives(plan.drives);
        for volume in self.volumes().volumes() {
            let name = volume.header().name.to_string();
            let plan = plan.clone();
            self.edit_volume(&name, move |header| {
                (header.placement, header.route) = (placement(plan.copies, plan.width), plan.route);
            });
        }
        planned
    }

    /// Adds an empty drive on a host of its own; it takes no new data yet. `port` is where its program listens, another one than that of
    /// its address if something stands before it. Returns the host, and the keys as the file server has them.
    ///
    /// # Panics
    /// If it has one of that number.
    #[must_use]
    pub fn add_host(&self, number: u8, identity: Option<&Identity>, port: u16) -> (DriveHost, DriveKeys) {
        let at = drive_address(number);
        let node = self.world.node(&format!("drive {number}"), at.ip());
        let plan = self.host_plan(number, SocketAddr::new(at.ip(), port), identity);
        let (options, host) = self.start_host(node, at, plan);
        let keys = options.keys.clone();
        self.add(DriveId(u32::from(number) + 1), Medium::Remote(options));
        (host, keys)
    }

    /// Adds the program of a drive on the machine itself, which starts when the machine does.
    fn add_beside(&self, identity: Option<&Identity>) {
        let at = SocketAddr::from((self.address, PORT));
        let number = HERE.0 as u8 - 1;
        let (options, host) = self.start_host(self.node, at, self.host_plan(number, at, identity));
        self.add(HERE, Medium::Beside(options, Box::new(host)));
    }

    fn host_plan(&self, number: u8, at: SocketAddr, identity: Option<&Identity>) -> HostPlan {
        let server = IpAddr::from(self.address);
        HostPlan { number, secret: SECRET, at, identity: identity.cloned(), server }
    }

    fn start_host(
        &self,
        node: afs_sim::NodeId,
        at: SocketAddr,
        plan: HostPlan,
    ) -> (RemoteOptions, DriveHost) {
        let security = plan.identity.as_ref().map_or(Security::Clear, |one| Security::Tls(one.fingerprint()));
        let keys = DriveKeys::from(Arc::new(plan.key()));
        let options = RemoteOptions::new(&format!("far-{}", plan.number), at, security, keys, STORE);
        (options, DriveHost::start(&self.world, node, plan))
    }

    /// Adds an empty bucket, which takes no new data yet. Returns its store.
    ///
    /// # Panics
    /// If it has one.
    #[must_use]
    pub fn add_bucket(&self) -> SignedStore {
        let env = self.world.env(self.node);
        let store = SignedStore::new(env.clone());
        let bucket: Arc<dyn afs_bucket::Bucket> = Arc::new(store.clone());
        let making = BucketDrive::create(bucket, OWNER, env, Config::default());
        drop(self.world.block_on(self.node, SETTING, making).expect("an end").expect("an empty store"));
        self.add(BUCKET, Medium::Bucket(store.clone()));
        store
    }

    fn add(&self, id: DriveId, medium: Medium) {
        let partitions = self.processes(|processes| processes.partitions.clone()).expect("it runs");
        medium.attach(id, &self.world.env(self.node), &partitions).expect("a drive that it does not have");
        self.drives.lock().known.push((id, medium));
    }

    /// New data go to these drives, as the first partition numbers them, in this life of the machine and the next ones.
    ///
    /// # Panics
    /// If it has not all of them.
    pub fn use_drives(&self, ids: &[DriveId]) {
        self.volumes().use_drives(ids).expect("drives that it has");
        self.drives.lock().in_use = ids.to_vec();
    }

    /// The volumes of the first partition.
    ///
    /// # Panics
    /// If it does not run, or has no such partition.
    #[must_use]
    pub fn volumes(&self) -> VolumeStore {
        self.processes(|processes| processes.stores.get(&PARTITION).cloned()).flatten().expect("it runs")
    }

    /// Changes the settings of the volume of that name in the first partition.
    ///
    /// # Panics
    /// If there is none, or they cannot be changed.
    pub fn edit_volume(&self, name: &str, change: impl FnOnce(&mut VolumeHeader) + Send + 'static) {
        let id = self.volume(name).expect("there is such a volume");
        let volume = self.volumes().volume(id).expect("in the first partition");
        let edit = async move {
            let set = volume.edit(move |tx| {
                change(tx.edit_header());
                Ok(())
            });
            set.await.map_err(|error| error.to_string())
        };
        let edited = self.world.block_on(self.node, SETTING, edit);
        edited.expect("an end").expect("a setting");
    }
}

/// On how many drives data are when a store is complete, 0 for the default, and over how many the mebibytes of a file go round.
///
/// # Panics
/// If files would go round no drive, or too many.
#[must_use]
pub fn placement(copies: u32, width: u32) -> Placement {
    Placement { copies: DriveCount::new(copies), width: DriveCount::new(width).expect("a width") }
}
