//! A drive on a host of its own that does to requests of clients what a test says.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_datapath::capability::{DriveKey, Refusal, StoreNumber, TicketId};
use afs_datapath::frame::{ChunkReply, ChunkRequest};
use afs_datapath::session::{
    ChunkCall, Chunks, Drive as Served, DriveLimits, Failure, Objects, Offer, Opened, Pieces, ReadRequest,
    StoreRequest, Taken, accept,
};
use afs_remote::{ChunkStores, Run};
use afs_rpc::{BoxFuture, EnvExt, EnvRef};
use afs_sim::NodeId;
use afs_sim::disk::SimDisk;
use bytes::Bytes;

use crate::common::{Cell, SERVER};

/// A drive on a host of its own.
pub struct Host {
    pub node: NodeId,
    pub served: Arc<Served>,
    at: SocketAddr,
    disk: SimDisk,
    /// The number of the present run.
    run: u64,
    conduct: Arc<Behaviour>,
}

/// What a test has the drive do, and what the drive has done.
#[derive(Default)]
struct Behaviour {
    reads: Mutex<Conduct>,
    /// Whether the file server's reads get the same as those of clients.
    is_to_all: AtomicBool,
    staging: Mutex<Staging>,
    staged: AtomicU64,
    when_given: Mutex<Option<Then>>,
}

impl Host {
    pub fn set_conduct(&self, conduct: Conduct) {
        *self.conduct.reads.lock().unwrap() = conduct;
    }

    pub fn set_staging(&self, staging: Staging) {
        *self.conduct.staging.lock().unwrap() = staging;
    }

    /// Whether the conduct is shown to the file server too, not to clients alone.
    pub fn set_to_all(&self, is_to_all: bool) {
        self.conduct.is_to_all.store(is_to_all, Ordering::Relaxed);
    }

    /// Does something when receipts are given to a client next.
    pub fn when_receipts_are_given(&self, then: impl FnOnce() + Send + 'static) {
        *self.conduct.when_given.lock().unwrap() = Some(Box::new(then));
    }

    /// How many requests to stage a chunk have come.
    pub fn staged(&self) -> u64 {
        self.conduct.staged.load(Ordering::Relaxed)
    }

    /// The disk with its chunks.
    pub fn disk(&self) -> &SimDisk {
        &self.disk
    }

    /// A power failure of the host, and the next start.
    pub fn restart(&mut self, cell: &Cell, key: DriveKey, offer: Offer) {
        cell.sim.crash(self.node);
        cell.sim.restart(self.node);
        self.run += 1;
        let at = (cell.sim.env(self.node), self.at);
        self.served = start(at, &self.disk, self.run, &self.conduct, key, offer);
    }
}

/// Starts a drive with an empty disk.
pub fn serve(cell: &Cell, (node, at): (NodeId, SocketAddr), key: DriveKey, offer: Offer) -> Host {
    let (disk, conduct, run) = (cell.sim.disk(node), Arc::default(), 1);
    let served = start((cell.sim.env(node), at), &disk, run, &conduct, key, offer);
    Host { node, served, at, disk, run, conduct }
}

/// A run of a drive.
fn start(
    (env, at): (EnvRef, SocketAddr),
    disk: &SimDisk,
    run: u64,
    conduct: &Arc<Behaviour>,
    key: DriveKey,
    offer: Offer,
) -> Arc<Served> {
    let disk = disk.clone();
    let open = move |store: StoreNumber| Ok(disk.segments(&format!("store-{}", store.0)));
    let stores = ChunkStores::new(env.clone(), Run(run), open);
    let revocations = stores.revocations();
    let objects = False { stores: Arc::new(stores), conduct: conduct.clone(), env: env.clone() };
    let served = Served::new(key, revocations, Arc::new(objects), DriveLimits::default());
    let listener = env.listen(at).unwrap();
    env.spawn(Box::pin(accept(env.clone(), listener, offer, served.clone())));
    served
}

/// What a drive does with reads of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Conduct {
    #[default]
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

/// What a drive does with stores of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Staging {
    #[default]
    Honest,
    Refuses,
    /// Says that there is no room left.
    Full,
    /// Replies nothing.
    Silent,
    /// Stages, and then fails.
    NoReceipts,
    FalseReceipts,
    /// Tells another run than the one of its chunks.
    OtherRun,
}

/// The chunks of a drive that may be false.
struct False {
    stores: Arc<dyn Objects>,
    conduct: Arc<Behaviour>,
    env: EnvRef,
}

/// What is done once.
type Then = Box<dyn FnOnce() + Send>;

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
        let is_stage = matches!(call.what, ChunkRequest::Stage { .. } | ChunkRequest::Send { .. });
        let is_clients = is_stage || matches!(call.what, ChunkRequest::Receipts { .. });
        let staging = if is_clients { *self.conduct.staging.lock().unwrap() } else { Staging::Honest };
        if is_stage {
            self.conduct.staged.fetch_add(1, Ordering::Relaxed);
        }
        let conduct = self.conduct.clone();
        let done = self.stores.chunks().unwrap().perform(call, bytes);
        Box::pin(async move {
            match staging {
                Staging::Refuses => return Err(Failure::Refused(Refusal::Revoked)),
                Staging::Full => return Err(Failure::NoSpace),
                Staging::Silent => std::future::pending().await,
                Staging::NoReceipts if !is_stage => return Err(Failure::Io),
                _ => {}
            }
            match done.await? {
                ChunkReply::Receipts { run, mut receipts } => {
                    let then = conduct.when_given.lock().unwrap().take();
                    then.into_iter().for_each(|then| then());
                    if staging == Staging::FalseReceipts {
                        receipts[0].0[3] ^= 1;
                    }
                    Ok(ChunkReply::Receipts { run: run + u64::from(staging == Staging::OtherRun), receipts })
                }
                other => Ok(other),
            }
        })
    }

    fn open(&self, call: ChunkCall) -> BoxFuture<'static, Result<Opened, Failure>> {
        let is_clients = call.peer.ip() != IpAddr::from(SERVER);
        let gets_it = is_clients || self.conduct.is_to_all.load(Ordering::Relaxed);
        let conduct = if gets_it { *self.conduct.reads.lock().unwrap() } else { Conduct::Honest };
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
