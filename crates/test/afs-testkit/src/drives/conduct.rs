//! What a drive on a host of its own does with requests, well or badly.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use afs_datapath::capability::{Refusal, TicketId};
use afs_datapath::frame::{ChunkReply, ChunkRequest};
use afs_datapath::session::{
    ChunkCall, Chunks, Failure, Objects, Opened, Pieces, ReadRequest, StoreRequest, Taken,
};
use afs_rpc::{BoxFuture, EnvExt, EnvRef};
use bytes::Bytes;
use parking_lot::Mutex;

/// What a drive does with reads of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Conduct {
    /// What it should.
    #[default]
    Honest,
    /// One byte is another one.
    Lies,
    /// Announces and sends one byte less.
    Short,
    /// Announces one byte less, and sends all.
    LongerThanTold,
    /// Refuses the capability.
    Refuses,
    /// Its disk fails.
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
    /// What it should.
    #[default]
    Honest,
    /// Refuses the capability.
    Refuses,
    /// Says that there is no room left.
    Full,
    /// Replies nothing.
    Silent,
    /// Stages, and fails when the file server claims.
    Keeps,
    /// Stages, and says then that it has nothing of it.
    Forgets,
}

/// What a test has the drive do, and what the drive has done.
#[derive(Default)]
pub(super) struct Behaviour {
    pub(super) reads: Mutex<Conduct>,
    /// Whether the file server's reads get the same as those of clients.
    pub(super) is_to_all: AtomicBool,
    pub(super) staging: Mutex<Staging>,
    pub(super) staged: AtomicU64,
    pub(super) when_given: Mutex<Option<Then>>,
}

/// The chunks of a drive that may be false.
pub(super) struct False {
    pub(super) stores: Arc<dyn Objects>,
    pub(super) conduct: Arc<Behaviour>,
    /// The file server's address, which gets the same as clients only where the test says so.
    pub(super) server: IpAddr,
    pub(super) env: EnvRef,
}

/// What is done once.
pub(super) type Then = Box<dyn FnOnce() + Send>;

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
        let is_claim = matches!(call.what, ChunkRequest::Claim { .. });
        let staging = if is_stage || is_claim { *self.conduct.staging.lock() } else { Staging::Honest };
        if is_stage {
            self.conduct.staged.fetch_add(1, Ordering::Relaxed);
        }
        let conduct = self.conduct.clone();
        let done = self.stores.chunks().unwrap().perform(call, bytes);
        Box::pin(async move {
            match staging {
                Staging::Keeps if is_claim => return Err(Failure::Io),
                Staging::Forgets if is_claim => return Err(Failure::NotStaged),
                Staging::Refuses if is_stage => return Err(Failure::Refused(Refusal::Revoked)),
                Staging::Full if is_stage => return Err(Failure::NoSpace),
                Staging::Silent if is_stage => std::future::pending().await,
                _ => {}
            }
            let reply = done.await?;
            if is_claim {
                let then = conduct.when_given.lock().take();
                then.into_iter().for_each(|then| then());
            }
            Ok(reply)
        })
    }

    fn open(&self, call: ChunkCall) -> BoxFuture<'static, Result<Opened, Failure>> {
        let is_clients = call.peer.ip() != self.server;
        let gets_it = is_clients || self.conduct.is_to_all.load(Ordering::Relaxed);
        let conduct = if gets_it { *self.conduct.reads.lock() } else { Conduct::Honest };
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
