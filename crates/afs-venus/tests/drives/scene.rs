//! A cell whose new data go to drives on other hosts.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_bucket::{Admission, BucketDrive, Config, OwnerId};
use afs_datapath::capability::{DriveId as PathDrive, DriveKey, KeyEpoch, StoreNumber};
use afs_datapath::session::{Identity, Offer, Security};
use afs_drive::DriveId;
use afs_remote::{DirectDrive, DriveKeys, RemoteDrive, RemoteOptions};
use afs_testkit::{FileCalls, SignedStore};
use afs_volume::{DataRoute, DriveCount, Placement, Rebuild, VolumeHeader, VolumeStore};
use afs_wire::ids::PartitionId;

use crate::ALICE;
use crate::common::{Cell, Client, LIMIT, ROOT, pattern};
use crate::host::{Conduct, Host, serve};
use crate::older::gate;

pub const MIB: usize = 1 << 20;
/// Long enough for a connection to be opened.
pub const OPENING: Duration = Duration::from_secs(5);
/// The bucket, where there is one.
pub const BUCKET: DriveId = DriveId(9);
const OWNER: OwnerId = OwnerId([7; 16]);
const STORE: StoreNumber = StoreNumber(3);

/// Not among the addresses of clients.
fn address(number: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 1, 9 + number), 7010))
}

/// A drive of such a number, whose key is made of a secret.
pub fn key(number: u8, secret: u8) -> DriveKey {
    DriveKey::new(PathDrive(0xd1 + u128::from(number)), KeyEpoch(1), [secret; 32])
}

/// Where the data of a volume go: the store's own drive, those of other hosts, a bucket.
const PLACES: [&[DriveId]; 8] = [
    &[DriveId::OWN],
    &[DriveId(1)],
    &[BUCKET],
    &[DriveId(1), DriveId(2)],
    &[DriveId::OWN, DriveId(1)],
    &[DriveId(1), BUCKET],
    &[DriveId(1), DriveId(2), DriveId(3)],
    &[DriveId::OWN, DriveId(1), BUCKET],
];

/// The drives of a volume's data, and its organisation.
#[derive(Clone, Debug)]
pub struct Plan {
    pub drives: &'static [DriveId],
    pub copies: u32,
    pub width: u32,
    pub route: DataRoute,
}

impl Plan {
    /// Seeds in a row go through all kinds of drives and all organisations, and 32 through all pairs of them.
    pub fn of_seed(seed: u64) -> Plan {
        let drives = PLACES[(seed % 8) as usize];
        let one_of = |number: u64| 1 + (number % drives.len() as u64) as u32;
        let route = DataRoute::ALL[((seed + seed / 8) % 4) as usize];
        Plan { drives, copies: one_of(seed / 2 + seed / 32), width: one_of(seed / 3 + seed / 16), route }
    }
}

/// The cell, and its drives.
pub struct Scene {
    pub cell: Cell,
    pub hosts: Vec<Host>,
    store: Option<SignedStore>,
    /// The drives that take new data, as the partition numbers them.
    in_use: Mutex<Vec<DriveId>>,
    /// Keys of each drive, as the file server has them.
    pub keys: Vec<DriveKeys>,
    pub writer: Client,
}

impl Scene {
    /// A cell whose file server has no data path, and no drive but its own.
    pub fn without_data_path(seed: u64) -> Scene {
        let cell = Cell::new(seed);
        let writer = cell.client(1);
        let (hosts, store, keys) = (Vec::new(), None, Vec::new());
        let scene = Scene { cell, hosts, store, in_use: Mutex::default(), keys, writer };
        scene.use_drives(&[DriveId::OWN]);
        scene
    }

    /// What a plan says, in the clear.
    pub fn planned(seed: u64, plan: &Plan) -> Scene {
        let is_far = |id: &&DriveId| ![DriveId::OWN, BUCKET].contains(*id);
        let mut scene = Scene::with(seed, plan.drives.iter().filter(is_far).count() as u8, None);
        if plan.drives.contains(&BUCKET) {
            scene.add_bucket();
        }
        scene.use_drives(plan.drives);
        scene.place(plan.copies, plan.width);
        scene.set_route(plan.route);
        scene
    }

    /// One drive, in the clear.
    pub fn new(seed: u64) -> Scene {
        Scene::with(seed, 1, None)
    }

    /// Two drives, of which the second has copies of what is on the first.
    pub fn with_copies(seed: u64) -> Scene {
        Scene::with(seed, 2, None)
    }

    /// Three drives.
    pub fn with_three(seed: u64) -> Scene {
        Scene::with(seed, 3, None)
    }

    /// One drive with TLS, whose identity the file server knows.
    pub fn with_tls(seed: u64) -> Scene {
        Scene::with(seed, 1, Some(identity(0)))
    }

    /// One drive, whose program speaks no later version of the protocol.
    pub fn with_older_drive(seed: u64, latest: u32) -> Scene {
        Scene::made(seed, 1, None, Some(latest))
    }

    /// Two drives, of a file server that does not know some calls.
    pub fn with_older_server(seed: u64, unknown: &[u32]) -> Scene {
        Scene::in_cell(Cell::with_older_server(seed, true, unknown), 2, None, None)
    }

    /// One drive, of a file server that does something else with some calls.
    pub fn with_calls(seed: u64, calls: FileCalls) -> Scene {
        Scene::in_cell(Cell::with_calls(seed, true, calls), 1, None, None)
    }

    /// One drive, and a bucket as the second, which takes new data and is read by clients.
    pub fn with_bucket(seed: u64) -> Scene {
        let mut scene = Scene::new(seed);
        scene.add_bucket();
        scene.use_drives(&[BUCKET]);
        scene
    }

    /// Adds an empty bucket as a drive, which takes no new data yet.
    pub fn add_bucket(&mut self) {
        let env = self.cell.sim.env(self.cell.server);
        let store = SignedStore::new(env.clone());
        let bucket: Arc<dyn afs_bucket::Bucket> = Arc::new(store.clone());
        let making = BucketDrive::create(bucket, OWNER, env, Config::default());
        drop(self.cell.sim.block_on(self.cell.server, LIMIT, making).unwrap().unwrap());
        attach_bucket(&self.cell, &store);
        *self.cell.objects.lock().unwrap() = Some(Arc::new(store.clone()));
        self.store = Some(store);
    }

    /// The store of the bucket.
    pub fn store(&self) -> &SignedStore {
        self.store.as_ref().unwrap()
    }

    fn with(seed: u64, drives: u8, identity: Option<Identity>) -> Scene {
        Scene::made(seed, drives, identity, None)
    }

    fn made(seed: u64, drives: u8, identity: Option<Identity>, latest: Option<u32>) -> Scene {
        let cell = Cell::with_data_path(seed, identity.is_none());
        Scene::in_cell(cell, drives, identity, latest)
    }

    fn in_cell(cell: Cell, drives: u8, identity: Option<Identity>, latest: Option<u32>) -> Scene {
        cell.users.add("alice", 11);
        cell.users.add("bob", 12);
        cell.set_limits(|limits| limits.read_ahead_chunks = 0);
        let hosts = (0..drives).map(|number| host(&cell, number, identity.as_ref(), latest));
        let (hosts, keys) = hosts.unzip();
        let ids: Vec<_> = match drives {
            0 => vec![DriveId::OWN],
            _ => (1..=u32::from(drives)).map(DriveId).collect(),
        };
        let writer = cell.client(1);
        let scene = Scene { cell, hosts, store: None, in_use: Mutex::default(), keys, writer };
        scene.use_drives(&ids);
        scene.set_route(DataRoute::Drives);
        scene
    }

    pub fn set_route(&self, route: DataRoute) {
        self.edit(move |header| header.route = route);
    }

    /// Of the volume, in blocks of a kibibyte.
    pub fn set_quota(&self, blocks: u32) {
        self.edit(move |header| header.max_quota = blocks);
    }

    /// On how many drives data are when a store is complete, and over how many the mebibytes of a file go round.
    pub fn place(&self, copies: u32, width: u32) {
        let (copies, width) = (DriveCount::new(copies), DriveCount::new(width).unwrap());
        self.edit(move |header| header.placement = Placement { copies, width });
    }

    fn edit(&self, change: impl FnOnce(&mut VolumeHeader) + Send + 'static) {
        let volume = self.cell.partitions().volume(self.cell.volume(ROOT)).unwrap();
        self.at_server(async move {
            let set = volume.edit(move |tx| {
                change(tx.edit_header());
                Ok(())
            });
            set.await.map_err(|error| error.to_string()).unwrap();
        });
    }

    /// The file server reaches a drive no more, nor does the drive it; or again.
    pub fn reach(&self, host: usize, reaches: bool) {
        let (server, node) = (self.cell.server, self.hosts[host].node);
        for (from, to) in [(server, node), (node, server)] {
            if reaches { self.cell.sim.mend(from, to) } else { self.cell.sim.cut(from, to) }
        }
    }

    fn at_server(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.cell.sim.block_on(self.cell.server, LIMIT, work).unwrap();
    }

    /// Has all data copied to the drives that take copies.
    pub fn copy(&self) {
        let partitions = self.cell.partitions();
        self.at_server(async move {
            let store: &VolumeStore = partitions.store(PartitionId(0)).unwrap();
            let mut position = Rebuild::default();
            while !store.rebuild_step(&mut position, 64 << 20).await.unwrap().complete {}
        });
    }

    /// New data go to these drives, as the partition numbers them.
    pub fn use_drives(&self, ids: &[DriveId]) {
        self.volumes().use_drives(ids).unwrap();
        *self.in_use.lock().unwrap() = ids.to_vec();
    }

    /// The volumes of the file server's partition.
    pub fn volumes(&self) -> VolumeStore {
        self.cell.partitions().store(PartitionId(0)).unwrap().clone()
    }

    /// A power failure of the file server, and its next start with the same drives. Those on other hosts are in the clear.
    pub fn restart_server(&self) {
        self.cell.restart_server();
        for (number, keys) in (0..).zip(&self.keys) {
            attach(&self.cell, number, Security::Clear, keys);
        }
        self.store.iter().for_each(|store| attach_bucket(&self.cell, store));
        self.volumes().use_drives(&self.in_use.lock().unwrap()).unwrap();
    }

    /// A power failure of a drive's host, and the next start.
    pub fn restart_host(&mut self, number: usize) {
        self.hosts[number].restart(&self.cell, key(number as u8, 7), Offer::clear());
    }

    pub fn set_conduct(&self, conduct: Conduct) {
        self.hosts[0].set_conduct(conduct);
    }

    /// A client reaches a drive no more.
    pub fn cut(&self, client: &Client, host: usize) {
        let node = self.hosts[host].node;
        self.cell.sim.cut(client.node, node);
        self.cell.sim.cut(node, client.node);
    }

    pub fn put(&self, path: &str, bytes: Vec<u8>) {
        let (writer, path) = (self.writer.clone(), path.to_owned());
        self.cell.on(&self.writer, async move { writer.put(&path, &bytes).await.unwrap() });
    }

    /// The directory of a user who logs in at the writer, with rights of another one.
    pub fn make_home(&self, rights_of_bob: &'static str) {
        let writer = self.writer.clone();
        self.cell.on(&self.writer, async move {
            writer.log_in(ALICE, "alice").await;
            let alice = writer.user(ALICE);
            alice.mkdir("home").await.unwrap();
            alice.set_acl("home", &[("alice", "rlidwka"), ("bob", rights_of_bob)]).await.unwrap();
        });
    }

    /// A file of that user there.
    pub fn put_at_home(&self, bytes: Vec<u8>) {
        let writer = self.writer.clone();
        self.cell.on(&self.writer, async move { writer.user(ALICE).put("home/big", &bytes).await.unwrap() });
    }

    pub fn get(&self, client: &Client, path: &str) -> afs_venus::Result<Vec<u8>> {
        let (here, path) = (client.clone(), path.to_owned());
        self.cell.on(client, async move { here.get(&path).await })
    }

    /// A client that is connected to the drive: it has read a file there.
    pub fn warm(&self, number: u8) -> Client {
        self.put("warm", pattern(MIB, u64::from(number)));
        let client = self.cell.client(number);
        self.get(&client, "warm").unwrap();
        self.cell.sim.run_for(OPENING);
        client
    }
}

/// An identity of TLS.
fn identity(secret: u8) -> Identity {
    Identity::of_seed(&[secret + 1; 32]).unwrap()
}

/// A drive of the cell's file server, and its keys there.
fn host(cell: &Cell, number: u8, identity: Option<&Identity>, latest: Option<u32>) -> (Host, DriveKeys) {
    let at = address(number);
    let node = cell.sim.node(&format!("drive {number}"), at.ip());
    let offer = identity.map_or_else(Offer::clear, |identity| Offer::tls(identity.clone()));
    let behind = latest.map_or(at, |_| SocketAddr::new(at.ip(), at.port() + 1));
    let host = serve(cell, (node, behind), key(number, 7), offer);
    latest.inspect(|latest| gate(&cell.sim.env(node), at, behind, *latest));
    let security = identity.map_or(Security::Clear, |identity| Security::Tls(identity.fingerprint()));
    let keys = DriveKeys::from(Arc::new(key(number, 7)));
    attach(cell, number, security, &keys);
    (host, keys)
}

/// Makes a drive on another host known to the file server that runs now.
fn attach(cell: &Cell, number: u8, security: Security, keys: &DriveKeys) {
    let name = format!("far-{number}");
    let options = RemoteOptions::new(&name, address(number), security, keys.clone(), STORE);
    let (env, partitions) = (cell.sim.env(cell.server), cell.partitions());
    let (store, id) = (partitions.store(PartitionId(0)).unwrap(), DriveId(u32::from(number) + 1));
    store.add_drive(id, Arc::new(RemoteDrive::new(env.clone(), options.clone()))).unwrap();
    partitions.add_direct(PartitionId(0), id, DirectDrive::new(env, options));
}

/// The same for the bucket.
fn attach_bucket(cell: &Cell, store: &SignedStore) {
    let (env, partitions) = (cell.sim.env(cell.server), cell.partitions());
    let bucket: Arc<dyn afs_bucket::Bucket> = Arc::new(store.clone());
    let drive = BucketDrive::attached("bucket", bucket, Admission::Check(OWNER), env, Config::default());
    partitions.store(PartitionId(0)).unwrap().add_drive(BUCKET, Arc::new(drive.clone())).unwrap();
    partitions.add_addressed(PartitionId(0), BUCKET, Arc::new(drive));
}

/// Another host that answers for the first drive, with a key and an identity of its own.
pub fn impostor(cell: &Cell, has_tls: bool) -> Host {
    let at = address(90);
    let node = cell.sim.node("another drive", at.ip());
    let offer = if has_tls { Offer::tls(identity(1)) } else { Offer::clear() };
    let host = serve(cell, (node, at), key(0, 8), offer);
    cell.data_path.lock().unwrap().addresses.insert(address(0).ip(), at);
    host
}
