//! Files read at the drives that their file server names: programs notice only that the bytes are there.

// A cell that cannot be made is a failed test.
#![allow(clippy::unwrap_used)]

mod common;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_datapath::capability::{DriveId as PathDrive, DriveKey, KeyEpoch, Refusal, StoreNumber, TicketId};
use afs_datapath::frame::ChunkReply;
use afs_datapath::session::{
    ChunkCall, Chunks, Drive as Served, DriveLimits, Failure, Objects, Offer, Opened, Pieces, ReadRequest,
    Security, StoreRequest, Taken, accept,
};
use afs_drive::DriveId;
use afs_remote::{ChunkStores, DirectDrive, RemoteDrive, RemoteOptions, Run};
use afs_rpc::{BoxFuture, EnvExt};
use afs_sim::NodeId;
use afs_venus::OpenFlags;
use afs_volume::DataRoute;
use afs_wire::ids::PartitionId;
use bytes::Bytes;
use common::{Cell, Client, LIMIT, ROOT, SERVER, pattern};

const ALICE: u32 = 1001;
const FAR: DriveId = DriveId(1);
const MIB: usize = 1 << 20;
/// Long enough for a connection to be opened.
const OPENING: Duration = Duration::from_secs(5);

fn at() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, 9), 7010))
}

fn key(secret: u8) -> DriveKey {
    DriveKey::new(PathDrive(0xd1), KeyEpoch(1), [secret; 32])
}

/// What a drive does with reads of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Conduct {
    Honest,
    /// One byte is another one.
    Lies,
    /// Announces and sends one byte less.
    Short,
    /// Announces one byte less, and sends all.
    LongerThanTold,
    Refuses,
    Fails,
    /// Sends nothing.
    Silent,
    /// Sends half, and then fails.
    Half,
}

/// The chunks of a drive that may be false.
struct False {
    stores: Arc<dyn Objects>,
    conduct: Arc<Mutex<Conduct>>,
}

impl Objects for False {
    fn read(&self, request: ReadRequest) -> BoxFuture<'static, Result<Opened, Failure>> {
        self.stores.read(request)
    }

    fn store(&self, request: StoreRequest, bytes: Taken) -> BoxFuture<'static, Result<TicketId, Failure>> {
        self.stores.store(request, bytes)
    }

    fn chunks(&self) -> Option<&dyn Chunks> {
        Some(self)
    }
}

impl Chunks for False {
    fn perform(&self, call: ChunkCall, bytes: Taken) -> BoxFuture<'static, Result<ChunkReply, Failure>> {
        self.stores.chunks().unwrap().perform(call, bytes)
    }

    fn open(&self, call: ChunkCall) -> BoxFuture<'static, Result<Opened, Failure>> {
        let is_clients = call.peer.ip() != IpAddr::from(SERVER);
        let conduct = if is_clients { *self.conduct.lock().unwrap() } else { Conduct::Honest };
        let opened = self.stores.chunks().unwrap().open(call);
        Box::pin(async move {
            let mut opened = opened.await?;
            match conduct {
                Conduct::Refuses => return Err(Failure::Refused(Refusal::Revoked)),
                Conduct::Fails => return Err(Failure::Io),
                Conduct::Silent => std::future::pending().await,
                Conduct::Short | Conduct::LongerThanTold => opened.length -= 1,
                Conduct::Honest | Conduct::Lies | Conduct::Half => {}
            }
            let left = opened.length;
            opened.pieces =
                Box::new(FalsePieces { pieces: opened.pieces, conduct, half: left / 2, sent: 0, left });
            Ok(opened)
        })
    }
}

struct FalsePieces {
    pieces: Box<dyn Pieces>,
    conduct: Conduct,
    half: u64,
    sent: u64,
    left: u64,
}

impl Pieces for FalsePieces {
    fn next(&mut self, most: usize) -> BoxFuture<'_, Result<Bytes, Failure>> {
        Box::pin(async move {
            let mut bytes = self.pieces.next(most).await?.to_vec();
            self.sent += bytes.len() as u64;
            match self.conduct {
                Conduct::Lies => bytes.iter_mut().last().into_iter().for_each(|byte| *byte ^= 1),
                Conduct::Half if self.sent > self.half => return Err(Failure::Io),
                Conduct::Short => bytes.truncate(usize::try_from(self.left).unwrap()),
                _ => {}
            }
            self.left = self.left.saturating_sub(bytes.len() as u64);
            Ok(bytes.into())
        })
    }
}

/// A cell whose new data go to a drive on another host, at which clients read.
struct Scene {
    cell: Cell,
    host: NodeId,
    served: Arc<Served>,
    conduct: Arc<Mutex<Conduct>>,
    writer: Client,
}

impl Scene {
    fn new(seed: u64) -> Scene {
        Self::by(seed, DataRoute::Drives)
    }

    fn by(seed: u64, route: DataRoute) -> Scene {
        let cell = Cell::with_data_path(seed, true);
        cell.users.add("alice", 11);
        cell.users.add("bob", 12);
        cell.set_limits(|limits| limits.read_ahead_chunks = 0);
        let host = cell.sim.node("drive", at().ip());
        let conduct = Arc::new(Mutex::new(Conduct::Honest));
        let served = serve(&cell, (host, at()), 7, &conduct);
        let options = RemoteOptions::new("far", at(), Security::Clear, Arc::new(key(7)), StoreNumber(3));
        let (env, partitions) = (cell.sim.env(cell.server), cell.partitions());
        let store = partitions.store(PartitionId(0)).unwrap();
        store.add_drive(FAR, Arc::new(RemoteDrive::new(env.clone(), options.clone()))).unwrap();
        store.use_drive(FAR).unwrap();
        partitions.add_direct(PartitionId(0), FAR, DirectDrive::new(env, options));
        let writer = cell.client(1);
        let scene = Scene { cell, host, served, conduct, writer };
        scene.set_route(route);
        scene
    }

    fn set_route(&self, route: DataRoute) {
        let volume = self.cell.partitions().volume(self.cell.volume(ROOT)).unwrap();
        let setting = async move {
            let set = volume.edit(move |tx| {
                tx.edit_header().route = route;
                Ok(())
            });
            set.await.map_err(|error| error.to_string())
        };
        self.cell.sim.block_on(self.cell.server, LIMIT, setting).unwrap().unwrap();
    }

    fn set_conduct(&self, conduct: Conduct) {
        *self.conduct.lock().unwrap() = conduct;
    }

    fn put(&self, path: &str, bytes: Vec<u8>) {
        let (writer, path) = (self.writer.clone(), path.to_owned());
        self.cell.on(&self.writer, async move { writer.put(&path, &bytes).await.unwrap() });
    }

    fn get(&self, client: &Client, path: &str) -> afs_venus::Result<Vec<u8>> {
        let (here, path) = (client.clone(), path.to_owned());
        self.cell.on(client, async move { here.get(&path).await })
    }

    /// A client that is connected to the drive: it has read a file there.
    fn warm(&self, number: u8) -> Client {
        self.put("warm", pattern(MIB, u64::from(number)));
        let client = self.cell.client(number);
        self.get(&client, "warm").unwrap();
        self.cell.sim.run_for(OPENING);
        client
    }
}

fn serve(
    cell: &Cell,
    (host, at): (NodeId, SocketAddr),
    secret: u8,
    conduct: &Arc<Mutex<Conduct>>,
) -> Arc<Served> {
    let (env, disk) = (cell.sim.env(host), cell.sim.disk(host));
    let open = move |store: StoreNumber| Ok(disk.segments(&format!("store-{}", store.0)));
    let stores = ChunkStores::new(env.clone(), Run(1), open);
    let revocations = stores.revocations();
    let objects = False { stores: Arc::new(stores), conduct: conduct.clone() };
    let drive = Served::new(key(secret), revocations, Arc::new(objects), DriveLimits::default());
    let listener = env.listen(at).unwrap();
    env.spawn(Box::pin(accept(env.clone(), listener, Offer::clear(), drive.clone())));
    drive
}

fn at_drives(client: &Client) -> u64 {
    client.venus.counters().drive_bytes_fetched
}

fn fallbacks(client: &Client, reason: &str) -> u64 {
    client.venus.counters().drive_fallbacks.get(reason).copied().unwrap_or_default()
}

#[test]
fn a_file_is_read_at_the_drive_and_its_server_sends_what_it_alone_has() {
    for seed in 1..5 {
        let scene = Scene::new(seed);
        let big = pattern(5 * MIB + 3, 7);
        scene.put("big", big.clone());
        let client = scene.warm(2);
        let before = client.venus.counters();
        assert!(scene.get(&client, "big").unwrap() == big, "seed {seed}");
        let after = client.venus.counters();
        assert_eq!(after.drive_bytes_fetched - before.drive_bytes_fetched, 5 * MIB as u64, "seed {seed}");
        assert_eq!(after.path_bytes_fetched, before.path_bytes_fetched, "seed {seed}");
        assert_eq!(after.bytes_fetched - before.bytes_fetched, big.len() as u64);
        assert_eq!(client.calls("GetLayout"), 2, "one for each file");
        assert_eq!(fallbacks(&client, "connecting"), 1, "{:?}", after.drive_fallbacks);
        assert_eq!(scene.served.counts().refused, [0; 8]);
    }
}

#[test]
fn holes_are_zeros() {
    let scene = Scene::new(1);
    let writer = scene.writer.clone();
    scene.cell.on(&scene.writer, async move {
        let handle = writer.open_new("holes").await.unwrap();
        writer.venus.write(handle, 0, pattern(MIB, 3).into()).await.unwrap();
        writer.venus.write(handle, 4 * MIB as u64, pattern(MIB, 4).into()).await.unwrap();
        writer.venus.flush(handle, 0).await.unwrap();
        writer.venus.release(handle).await.unwrap();
    });
    let client = scene.warm(2);
    let whole = [pattern(MIB, 3), vec![0; 3 * MIB], pattern(MIB, 4)].concat();
    assert!(scene.get(&client, "holes").unwrap() == whole);
    assert_eq!(at_drives(&client), 2 * MIB as u64);
}

#[test]
fn a_drive_that_does_anything_is_read_past() {
    let conducts = [
        (Conduct::Lies, "damaged"),
        (Conduct::Short, "damaged"),
        (Conduct::LongerThanTold, "damaged"),
        (Conduct::Refuses, "refused"),
        (Conduct::Fails, "declined"),
        (Conduct::Silent, "stalled"),
        (Conduct::Half, "declined"),
    ];
    for (conduct, reason) in conducts {
        let scene = Scene::new(3);
        let big = pattern(2 * MIB, 9);
        scene.put("big", big.clone());
        let client = scene.warm(2);
        scene.set_conduct(conduct);
        assert!(scene.get(&client, "big").unwrap() == big, "{conduct:?}");
        assert_eq!(at_drives(&client), 0, "{conduct:?}");
        let counters = client.venus.counters();
        assert!(fallbacks(&client, reason) > 0, "{conduct:?}: {:?}", counters.drive_fallbacks);
        assert!(counters.path_bytes_fetched >= 2 * MIB as u64, "{conduct:?}: the file server's own drive");
    }
}

#[test]
fn a_drive_with_another_key_gives_nothing() {
    let scene = Scene::new(4);
    scene.put("one", pattern(MIB, 1));
    // Somebody on the way answers for the drive. Without TLS nothing proves the connection; the capabilities do not fit.
    let elsewhere = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 8), 7010));
    let host = scene.cell.sim.node("another drive", elsewhere.ip());
    serve(&scene.cell, (host, elsewhere), 8, &scene.conduct);
    scene.cell.data_path.lock().unwrap().addresses.insert(at().ip(), elsewhere);
    let client = scene.warm(2);
    assert!(scene.get(&client, "one").unwrap() == pattern(MIB, 1));
    assert_eq!(at_drives(&client), 0);
    assert!(fallbacks(&client, "refused") > 0, "{:?}", client.venus.counters().drive_fallbacks);
}

#[test]
fn a_drive_that_is_away_from_the_client_costs_it_a_moment_and_the_bytes_come() {
    for seed in 1..5 {
        let scene = Scene::new(seed);
        let files: Vec<_> = (0..4).map(|n| (format!("f{n}"), pattern(MIB, n))).collect();
        files.iter().for_each(|(name, bytes)| scene.put(name, bytes.clone()));
        let client = scene.warm(2);
        scene.cell.sim.cut(client.node, scene.host);
        scene.cell.sim.cut(scene.host, client.node);
        for (name, bytes) in &files {
            assert!(scene.get(&client, name).unwrap() == *bytes, "seed {seed}, {name}");
        }
        assert_eq!(at_drives(&client), 0);
        assert_eq!(
            fallbacks(&client, "stalled"),
            1,
            "once, then it is left alone: {:?}",
            client.venus.counters()
        );
        assert!(fallbacks(&client, "paused") > 0);
    }
}

#[test]
fn after_a_change_of_rights_nothing_is_read_at_the_drive() {
    let scene = Scene::new(6);
    let writer = scene.writer.clone();
    let big = pattern(4 * MIB, 5);
    let content = big.clone();
    scene.cell.on(&scene.writer, async move {
        writer.log_in(ALICE, "alice").await;
        let alice = writer.user(ALICE);
        alice.mkdir("home").await.unwrap();
        alice.set_acl("home", &[("alice", "rlidwka"), ("bob", "rl")]).await.unwrap();
        alice.put("home/big", &content).await.unwrap();
    });
    let client = scene.warm(2);
    let (here, writer) = (client.clone(), scene.writer.clone());
    let read = scene.cell.on(&client, async move {
        here.log_in(ALICE, "bob").await;
        let bob = here.user(ALICE);
        let handle = bob.open("home/big", OpenFlags::READ).await.unwrap();
        bob.venus.read(handle, 0, MIB).await.unwrap();
        here.env.sleep(OPENING).await;
        let first = bob.venus.read(handle, MIB as u64, MIB).await.unwrap();
        let before = at_drives(&here);
        let alice = writer.user(ALICE);
        alice.set_acl("home", &[("alice", "rlidwka")]).await.unwrap();
        let second = bob.venus.read(handle, 2 * MIB as u64, MIB).await;
        (
            first.len(),
            before > 0,
            at_drives(&here) == before,
            second.map(|bytes| bytes.len()).map_err(|e| e.errno()),
        )
    });
    assert_eq!(read, (MIB, true, true, Err(13)));
}

#[test]
fn a_second_read_asks_for_no_layout_and_another_version_for_its_own() {
    let scene = Scene::new(7);
    scene.put("big", pattern(3 * MIB, 1));
    let client = scene.warm(2);
    let before = client.calls("GetLayout");
    let here = client.clone();
    scene.cell.on(&client, async move {
        let handle = here.open("big", OpenFlags::READ).await.unwrap();
        for n in 0..3 {
            here.venus.read(handle, n * MIB as u64, MIB).await.unwrap();
        }
    });
    assert_eq!((client.calls("GetLayout") - before, at_drives(&client)), (1, 3 * MIB as u64));
    scene.put("big", pattern(3 * MIB, 2));
    assert!(scene.get(&client, "big").unwrap() == pattern(3 * MIB, 2));
    assert_eq!((client.calls("GetLayout") - before, at_drives(&client)), (2, 6 * MIB as u64));
}

#[test]
fn a_volume_that_has_no_layouts_costs_one_call_a_while() {
    let scene = Scene::new(8);
    scene.set_route(DataRoute::Server);
    for n in 0..6 {
        scene.put(&format!("f{n}"), pattern(MIB, n));
    }
    let client = scene.cell.client(2);
    for n in 0..6 {
        assert!(scene.get(&client, &format!("f{n}")).unwrap() == pattern(MIB, n));
    }
    assert_eq!((client.calls("GetLayout"), at_drives(&client)), (1, 0));
    scene.set_route(DataRoute::Drives);
    scene.cell.sim.run_for(Duration::from_secs(200));
    scene.put("f6", pattern(MIB, 6));
    scene.get(&client, "f6").unwrap();
    assert_eq!(client.calls("GetLayout"), 2);
}

#[test]
fn a_mount_may_forbid_drives_and_the_same_bytes_come_by_each_way() {
    let scene = Scene::new(9);
    let big = pattern(3 * MIB + 77, 4);
    scene.put("big", big.clone());
    let mut moved = Vec::new();
    for (number, (enabled, drives)) in [(2, (false, false)), (3, (true, false)), (4, (true, true))] {
        {
            let mut config = scene.cell.data_path.lock().unwrap();
            (config.enabled, config.drives) = (enabled, drives);
        }
        let client = scene.warm(number);
        assert!(scene.get(&client, "big").unwrap() == big);
        let counters = client.venus.counters();
        let asked = client.calls("GetLayout") > 0;
        moved.push((counters.path_bytes_fetched > 0, counters.drive_bytes_fetched > 0, asked));
    }
    assert_eq!(moved[..2], [(false, false, false), (true, false, false)]);
    assert!(moved[2].1 && moved[2].2);
}

#[test]
fn commanded_transfers_bring_the_same_bytes_by_a_call_each() {
    for seed in 1..5 {
        let scene = Scene::by(seed, DataRoute::Commanded);
        let big = pattern(5 * MIB + 3, 7);
        scene.put("big", big.clone());
        let client = scene.warm(2);
        let before = client.calls("Deliver");
        let fetched = at_drives(&client);
        assert!(scene.get(&client, "big").unwrap() == big, "seed {seed}");
        assert_eq!(at_drives(&client) - fetched, 5 * MIB as u64, "seed {seed}");
        assert_eq!(client.calls("Deliver") - before, 5, "one for each mebibyte");
        assert_eq!(client.venus.counters().path_bytes_fetched, 0);
        assert_eq!(scene.served.counts().refused, [0; 8]);
    }
}

#[test]
fn a_drive_or_a_file_server_that_does_not_deliver_is_read_past() {
    for conduct in [Conduct::Lies, Conduct::Refuses, Conduct::Silent, Conduct::Half] {
        let scene = Scene::by(3, DataRoute::Commanded);
        let big = pattern(2 * MIB, 9);
        scene.put("big", big.clone());
        let client = scene.warm(2);
        scene.set_conduct(conduct);
        assert!(scene.get(&client, "big").unwrap() == big, "{conduct:?}");
        assert!(client.venus.counters().path_bytes_fetched >= 2 * MIB as u64, "{conduct:?}");
    }
    // The setting changes after the layout was given: nothing is commanded any more.
    let scene = Scene::by(4, DataRoute::Commanded);
    scene.put("big", pattern(3 * MIB, 9));
    let client = scene.warm(2);
    let (here, before) = (client.clone(), at_drives(&client));
    let first = async move {
        let handle = here.open("big", OpenFlags::READ).await.unwrap();
        here.venus.read(handle, 0, MIB).await.unwrap();
        handle
    };
    let handle = scene.cell.on(&client, first);
    let fetched = at_drives(&client);
    assert!(fetched > before);
    scene.set_route(DataRoute::Server);
    let here = client.clone();
    let rest = async move { here.venus.read(handle, MIB as u64, 2 * MIB).await.unwrap() };
    assert!(scene.cell.on(&client, rest)[..] == pattern(3 * MIB, 9)[MIB..]);
    assert_eq!(at_drives(&client), fetched);
}
