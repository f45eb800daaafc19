//! A cell whose new data go to drives on other hosts.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::session::Identity;
use afs_drive::DriveId;
use afs_remote::DriveKeys;
use afs_testkit::{
    BUCKET, Conduct, DriveHost, DrivePlan, FileCalls, HostPlan, SignedStore, drive_address, placement,
};
use afs_volume::{DataRoute, Rebuild, VolumeHeader, VolumeStore};

use crate::common::{Cell, Client, LIMIT, ROOT, SERVER, pattern, refusing};
use crate::drives::ALICE;

pub const MIB: usize = 1 << 20;
/// Long enough for a connection to be opened.
pub const OPENING: Duration = Duration::from_secs(5);

/// The cell, and its drives.
pub struct Scene {
    pub cell: Cell,
    pub hosts: Vec<DriveHost>,
    store: Option<SignedStore>,
    /// Keys of each drive, as the file server has them.
    pub keys: Vec<DriveKeys>,
    pub writer: Client,
}

impl Scene {
    /// A cell whose file server has no data path, and no drive but its own.
    pub fn without_data_path(seed: u64) -> Scene {
        let cell = Cell::made(seed, None, |_| {});
        let writer = cell.client(1);
        let (hosts, store, keys) = (Vec::new(), None, Vec::new());
        let scene = Scene { cell, hosts, store, keys, writer };
        scene.use_drives(&[DriveId::OWN]);
        scene
    }

    /// What a plan says, in the clear.
    pub fn planned(seed: u64, plan: &DrivePlan) -> Scene {
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

    /// One drive, of a file server that does something else with some calls.
    pub fn with_calls(seed: u64, calls: FileCalls) -> Scene {
        Scene::in_cell(Cell::planned(seed, None, true, calls), 1, None)
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
        let store = self.cell.machine.add_bucket();
        *self.cell.objects.lock().unwrap() = Some(Arc::new(store.clone()));
        self.store = Some(store);
    }

    /// The store of the bucket.
    pub fn store(&self) -> &SignedStore {
        self.store.as_ref().unwrap()
    }

    fn with(seed: u64, drives: u8, identity: Option<Identity>) -> Scene {
        Scene::made(seed, drives, identity)
    }

    fn made(seed: u64, drives: u8, identity: Option<Identity>) -> Scene {
        let cell = Cell::planned(seed, None, identity.is_none(), refusing(&[]));
        Scene::in_cell(cell, drives, identity)
    }

    fn in_cell(cell: Cell, drives: u8, identity: Option<Identity>) -> Scene {
        cell.users.add("alice", 11);
        cell.users.add("bob", 12);
        cell.set_limits(|limits| limits.read_ahead_chunks = 0);
        let hosts = (0..drives)
            .map(|number| cell.machine.add_host(number, identity.as_ref(), drive_address(number).port()));
        let (hosts, keys) = hosts.unzip();
        let ids: Vec<_> = match drives {
            0 => vec![DriveId::OWN],
            _ => (1..=u32::from(drives)).map(DriveId).collect(),
        };
        let writer = cell.client(1);
        let scene = Scene { cell, hosts, store: None, keys, writer };
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
        self.edit(move |header| header.placement = placement(copies, width));
    }

    fn edit(&self, change: impl FnOnce(&mut VolumeHeader) + Send + 'static) {
        self.cell.machine.edit_volume(ROOT, change);
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
        let store = self.volumes();
        self.at_server(async move {
            let mut position = Rebuild::default();
            while !store.rebuild_step(&mut position, 64 << 20).await.unwrap().complete {}
        });
    }

    /// New data go to these drives, as the partition numbers them.
    pub fn use_drives(&self, ids: &[DriveId]) {
        self.cell.machine.use_drives(ids);
    }

    /// The volumes of the file server's partition.
    pub fn volumes(&self) -> VolumeStore {
        self.cell.machine.volumes()
    }

    /// A power failure of the file server, and its next start with the same drives.
    pub fn restart_server(&self) {
        self.cell.restart_server();
    }

    /// A power failure of a drive's host, and the next start.
    pub fn restart_host(&mut self, number: usize) {
        self.hosts[number].restart();
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

/// Another host that answers for the first drive, with a key and an identity of its own.
pub fn impostor(cell: &Cell, has_tls: bool) -> DriveHost {
    let at = drive_address(90);
    let node = cell.sim.node("another drive", at.ip());
    let identity = has_tls.then(|| identity(1));
    let plan = HostPlan { number: 0, secret: 8, at, identity, server: SERVER.into() };
    let host = DriveHost::start(&cell.sim, node, plan);
    cell.data_path.lock().unwrap().addresses.insert(drive_address(0).ip(), at);
    host
}
