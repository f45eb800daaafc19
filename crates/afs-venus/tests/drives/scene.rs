//! A cell whose new data go to drives on other hosts, which do to reads of clients what a test says.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_datapath::capability::{DriveId as PathDrive, DriveKey, KeyEpoch, Refusal, StoreNumber, TicketId};
use afs_datapath::frame::ChunkReply;
use afs_datapath::session::{
    ChunkCall, Chunks, Drive as Served, DriveLimits, Failure, Identity, Objects, Offer, Opened, Pieces,
    ReadRequest, Security, StoreRequest, Taken, accept,
};
use afs_drive::DriveId;
use afs_remote::{ChunkStores, DirectDrive, RemoteDrive, RemoteOptions, Run};
use afs_rpc::{BoxFuture, EnvExt, EnvRef};
use afs_sim::NodeId;
use afs_volume::{DataRoute, Rebuild, VolumeStore};
use afs_wire::ids::PartitionId;
use bytes::Bytes;

use crate::common::{Cell, Client, LIMIT, ROOT, SERVER, pattern};

pub const MIB: usize = 1 << 20;
/// Long enough for a connection to be opened.
pub const OPENING: Duration = Duration::from_secs(5);
const STORE: StoreNumber = StoreNumber(3);

fn address(number: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, 9 + number), 7010))
}

/// A drive of such a number, whose key is made of a secret.
fn key(number: u8, secret: u8) -> DriveKey {
    DriveKey::new(PathDrive(0xd1 + u128::from(number)), KeyEpoch(1), [secret; 32])
}

/// What a drive does with reads of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conduct {
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
    /// Waits for three seconds before each piece.
    Slow,
    /// Sends half, and then fails.
    Half,
}

/// The chunks of a drive that may be false.
struct False {
    stores: Arc<dyn Objects>,
    conduct: Arc<Mutex<Conduct>>,
    env: EnvRef,
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
        let env = self.env.clone();
        Box::pin(async move {
            let mut opened = opened.await?;
            match conduct {
                Conduct::Refuses => return Err(Failure::Refused(Refusal::Revoked)),
                Conduct::Fails => return Err(Failure::Io),
                Conduct::Silent => std::future::pending().await,
                Conduct::Short | Conduct::LongerThanTold => opened.length -= 1,
                Conduct::Honest | Conduct::Lies | Conduct::Half | Conduct::Slow => {}
            }
            let left = opened.length;
            let (pieces, half) = (opened.pieces, left / 2);
            opened.pieces = Box::new(FalsePieces { pieces, conduct, half, sent: 0, left, env });
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
    env: EnvRef,
}

impl Pieces for FalsePieces {
    fn next(&mut self, most: usize) -> BoxFuture<'_, Result<Bytes, Failure>> {
        Box::pin(async move {
            if self.conduct == Conduct::Slow {
                self.env.sleep(Duration::from_secs(3)).await;
            }
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

/// A drive on a host of its own.
pub struct Host {
    pub node: NodeId,
    pub served: Arc<Served>,
    conduct: Arc<Mutex<Conduct>>,
}

impl Host {
    pub fn set_conduct(&self, conduct: Conduct) {
        *self.conduct.lock().unwrap() = conduct;
    }
}

/// The cell, and its drives.
pub struct Scene {
    pub cell: Cell,
    pub hosts: Vec<Host>,
    pub writer: Client,
}

impl Scene {
    /// One drive, in the clear.
    pub fn new(seed: u64) -> Scene {
        Scene::with(seed, 1, None)
    }

    /// Two drives, of which the second has copies of what is on the first.
    pub fn with_copies(seed: u64) -> Scene {
        Scene::with(seed, 2, None)
    }

    /// One drive with TLS, whose identity the file server knows.
    pub fn with_tls(seed: u64) -> Scene {
        Scene::with(seed, 1, Some(identity(0)))
    }

    fn with(seed: u64, drives: u8, identity: Option<Identity>) -> Scene {
        let cell = Cell::with_data_path(seed, identity.is_none());
        cell.users.add("alice", 11);
        cell.users.add("bob", 12);
        cell.set_limits(|limits| limits.read_ahead_chunks = 0);
        let hosts: Vec<_> = (0..drives).map(|number| host(&cell, number, identity.as_ref())).collect();
        let ids: Vec<_> = (1..=u32::from(drives)).map(DriveId).collect();
        cell.partitions().store(PartitionId(0)).unwrap().use_drives(&ids).unwrap();
        let writer = cell.client(1);
        let scene = Scene { cell, hosts, writer };
        scene.set_route(DataRoute::Drives);
        scene
    }

    pub fn set_route(&self, route: DataRoute) {
        let volume = self.cell.partitions().volume(self.cell.volume(ROOT)).unwrap();
        self.at_server(async move {
            let set = volume.edit(move |tx| {
                tx.edit_header().route = route;
                Ok(())
            });
            set.await.map_err(|error| error.to_string()).unwrap();
        });
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

/// A drive of the cell's file server.
fn host(cell: &Cell, number: u8, identity: Option<&Identity>) -> Host {
    let at = address(number);
    let node = cell.sim.node(&format!("drive {number}"), at.ip());
    let offer = identity.map_or_else(Offer::clear, |identity| Offer::tls(identity.clone()));
    let host = serve(cell, (node, at), key(number, 7), offer);
    let security = identity.map_or(Security::Clear, |identity| Security::Tls(identity.fingerprint()));
    let name = format!("far-{number}");
    let options = RemoteOptions::new(&name, at, security, Arc::new(key(number, 7)), STORE);
    let (env, partitions) = (cell.sim.env(cell.server), cell.partitions());
    let (store, id) = (partitions.store(PartitionId(0)).unwrap(), DriveId(u32::from(number) + 1));
    store.add_drive(id, Arc::new(RemoteDrive::new(env.clone(), options.clone()))).unwrap();
    partitions.add_direct(PartitionId(0), id, DirectDrive::new(env, options));
    host
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

fn serve(cell: &Cell, (node, at): (NodeId, SocketAddr), key: DriveKey, offer: Offer) -> Host {
    let conduct = Arc::new(Mutex::new(Conduct::Honest));
    let (env, disk) = (cell.sim.env(node), cell.sim.disk(node));
    let open = move |store: StoreNumber| Ok(disk.segments(&format!("store-{}", store.0)));
    let stores = ChunkStores::new(env.clone(), Run(1), open);
    let revocations = stores.revocations();
    let objects = False { stores: Arc::new(stores), conduct: conduct.clone(), env: env.clone() };
    let served = Served::new(key, revocations, Arc::new(objects), DriveLimits::default());
    let listener = env.listen(at).unwrap();
    env.spawn(Box::pin(accept(env.clone(), listener, offer, served.clone())));
    Host { node, served, conduct }
}
