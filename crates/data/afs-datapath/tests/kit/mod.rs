//! Test kit: a simulated client and a drive with files in memory.

#![allow(dead_code, reason = "each test uses a part of it")]

mod files;
pub mod log;
pub mod raw;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{
    Access, ByteRange, Capability, DriveId, DriveKey, Group, KeyEpoch, Nonce, Revocations, Secret,
};
use afs_datapath::frame::{self, HandleNumber, Message, RequestId, Welcome};
use afs_datapath::session::{
    Arriving, Client, Drive, DriveLimits, Error, Handle, Lost, Offer, Patience, Security, accept,
};
use afs_env::{ByteStream, EnvRef};
use afs_sim::{NodeId, Sim};
use afs_wire::ids::{DataVersion, Fid, Uniquifier, VnodeId, VolumeId};
use bytes::Bytes;

#[allow(unused_imports, reason = "each test uses a part of it")]
pub use files::{Files, VERSION, pattern};
pub use raw::Raw;

/// The nonce of ends that are not of the crate.
pub const NONCE: Nonce = Nonce([3; 32]);
pub const HOUR: Duration = Duration::from_secs(3600);
pub const VOLUME: VolumeId = VolumeId(536_870_913);

/// A file; its directory is 1 for vnodes below 100, and 3 for others.
pub fn file(vnode: u32) -> Fid {
    Fid::new(VOLUME, VnodeId(vnode), Uniquifier(7))
}

pub fn directory(vnode: u32) -> Fid {
    Fid::new(VOLUME, VnodeId(vnode), Uniquifier(1))
}

/// A world with a drive and a client, which are not connected yet.
pub struct Kit {
    pub sim: Sim,
    pub drive_node: NodeId,
    pub client_node: NodeId,
    pub drive: Arc<Drive>,
    pub files: Arc<Files>,
}

pub fn at() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 7005))
}

impl Kit {
    pub fn new(seed: u64) -> Self {
        Self::with_limits(seed, DriveLimits::default())
    }

    pub fn with_limits(seed: u64, limits: DriveLimits) -> Self {
        let sim = Sim::new(seed);
        let drive_node = sim.node("drive", Ipv4Addr::new(10, 0, 0, 1).into());
        let client_node = sim.node("client", Ipv4Addr::new(10, 0, 0, 2).into());
        let files = Arc::new(Files::default());
        let key = DriveKey::new(DriveId(0xd1), KeyEpoch(5), [7; 32]);
        let drive = Drive::new(key, Revocations::default(), files.clone(), limits);
        let kit = Self { sim, drive_node, client_node, drive, files };
        kit.serve(at(), Offer::clear(), kit.drive.clone());
        kit
    }

    /// Serves a drive at an address of the drive's machine.
    pub fn serve(&self, at: SocketAddr, offer: Offer, drive: Arc<Drive>) {
        let env = self.sim.env(self.drive_node);
        let listener = env.listen(at).unwrap();
        env.spawn(Box::pin(accept(env.clone(), listener, offer, drive)));
    }

    pub fn client_env(&self) -> EnvRef {
        self.sim.env(self.client_node)
    }

    /// Runs work of the client, which must end within an hour.
    pub fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        match self.sim.block_on(self.client_node, HOUR, work) {
            Ok(value) => value,
            Err(hang) => panic!("{hang}"),
        }
    }

    /// Connects and opens.
    pub fn open(&self) -> Client {
        let env = self.client_env();
        self.run(async move { open(&env).await.unwrap() })
    }

    /// Connects without the protocol.
    pub fn raw(&self) -> Raw {
        let env = self.client_env();
        Raw::new(self.run(async move { env.connect(at()).await.unwrap() }))
    }

    /// A capability for reading and writing all of a group, for 5 minutes.
    pub fn capability(&self, group: Group) -> Capability {
        Capability {
            drive: self.drive.key().drive(),
            epoch: self.drive.key().epoch(),
            group,
            access: Access::READ | Access::WRITE,
            range: ByteRange::ALL,
            expires: self.client_env().wall().secs + 300,
            generation: self.drive.revocations.generation(group),
            holder: self.drive.key().holder(b"host", b"identity"),
        }
    }

    pub fn sealed(&self, group: Group) -> (Capability, Secret) {
        let capability = self.capability(group);
        (capability, self.drive.key().seal(&capability))
    }

    /// Presents a capability for the files of directory 1.
    pub fn present(&self, client: &Client) -> Handle {
        let (capability, secret) = self.sealed(Group::Directory(directory(1)));
        client.present(&capability, &secret).unwrap()
    }

    /// After everybody has let go, nothing is left at either end.
    pub fn assert_quiet(&self) {
        self.sim.run_for(HOUR);
        let counts = self.drive.counts();
        assert_eq!((counts.connected, counts.in_progress), (0, 0), "connections and requests of the drive");
        assert!(self.sim.task_count() <= 1, "a task beside that of the listener is left");
        assert_eq!(self.sim.stream_count(), 0, "a stream is left that nobody has");
    }
}

pub async fn open(env: &EnvRef) -> Result<Client, Lost> {
    let stream: Box<dyn ByteStream> = env.connect(at()).await?;
    Client::open(env.clone(), stream, Security::Clear, Patience::default()).await
}

/// What a false drive greets with: it gives credit for all of a store.
pub fn false_welcome() -> Welcome {
    Welcome {
        version: frame::VERSION,
        nonce: NONCE,
        drive: DriveId(0xd1),
        epoch: KeyEpoch(5),
        requests_max: 0,
        handles_max: 10,
        store_credit: u32::MAX,
    }
}

/// A drive at another port that greets and then does `act`. Returns a client of it.
pub fn false_drive<F>(kit: &Kit, act: impl FnOnce(Raw, EnvRef) -> F + Send + 'static) -> Client
where
    F: Future<Output = ()> + Send + 'static,
{
    let (server, at) = (kit.sim.env(kit.drive_node), SocketAddr::from(([10, 0, 0, 1], 7009)));
    let (env, mut listener) = (server.clone(), server.listen(at).unwrap());
    server.spawn(Box::pin(async move {
        let mut raw = Raw::new(listener.accept().await.unwrap());
        raw.message().await;
        raw.send(&Message::Welcome(false_welcome())).await;
        act(raw, env).await;
    }));
    let env = kit.client_env();
    kit.run(async move {
        let stream = env.connect(at).await.unwrap();
        Client::open(env.clone(), stream, Security::Clear, Patience::default()).await.unwrap()
    })
}

/// A read of all of file 2, by handle 0.
pub fn read_all(request: u32, credit: u32) -> Message {
    let (request, handle, fid) = (RequestId(request), HandleNumber(0), file(2));
    Message::Read { request, handle, fid, range: ByteRange::ALL, version: VERSION, credit }
}

pub fn range(start: u64, end: u64) -> ByteRange {
    ByteRange::new(start, end).unwrap()
}

pub fn version() -> DataVersion {
    VERSION
}

/// Reads a range to its end.
pub async fn read(client: &Client, handle: &Handle, fid: Fid, range: ByteRange) -> Result<Vec<u8>, Error> {
    let arriving = client.read(handle, fid, range, VERSION).await?;
    drain(arriving).await
}

pub async fn drain(mut arriving: Arriving) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    while let Some(piece) = arriving.next().await? {
        assert!(!piece.is_empty());
        bytes.extend_from_slice(&piece);
    }
    assert_eq!(bytes.len() as u64, arriving.length());
    Ok(bytes)
}

pub fn piece(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}
