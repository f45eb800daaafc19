//! Talking to clients: getting to know them, breaking what they were promised, finding out who is gone
//! (docs/protocol callback.md "5. What a file server does").

mod breaks;
mod contact;
mod late;
mod messages;
mod resume;
mod strangers;
mod sweep;
mod waiting_room;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::future::{Either, select};
use afs_rpc::{Caller, EnvExt, EnvRef, Identity, Rx, WeakRx, sync};
use afs_wire::error::AbortCode;
use afs_wire::ids::{Fid, Uuid};
use parking_lot::Mutex;

use crate::callbacks::{Callbacks, Grant};
use crate::hosts::{Addresses, Host, HostIdentity, HostTable};
pub(crate) use breaks::BreakQueue;
pub use breaks::Breaks;
use late::LateAddresses;
use strangers::Strangers;
use waiting_room::WaitingRoom;

/// How long a client may take to answer.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// To say who it is, or to forget everything, at first contact. Default 20 s.
    pub contact: Duration,
    /// To take a broken callback; the caller that changed the object waits for it. A client that was late before has less: half,
    /// then a quarter. Default 4 s.
    pub breaking: Duration,
    /// To show that it lives. Default 2 s.
    pub probe: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            contact: Duration::from_secs(20),
            breaking: Duration::from_secs(4),
            probe: Duration::from_secs(2),
        }
    }
}

/// Ports of one address that are asked who they are at the same time. Calls from more are answered VBUSY.
const INTRODUCTIONS_MAX: usize = 64;
/// Promises taken back at a time when there is no room for another.
const RECLAIM_STEP: usize = 64;

/// All clients of a file server: who they are, what they were promised, and the way to them.
pub struct Clients {
    env: EnvRef,
    /// The transport holds the services, which hold this: a strong handle would keep all of it for ever.
    rx: WeakRx,
    server: Uuid,
    hosts: HostTable,
    callbacks: Arc<Callbacks>,
    patience: Patience,
    /// Addresses being asked who they are, so that several first calls ask once.
    introductions: Mutex<BTreeMap<SocketAddr, Arc<sync::Mutex<()>>>>,
    /// Calls that wait for their clients.
    waiting: Arc<WaitingRoom>,
    /// Addresses that were asked and did not answer.
    strangers: Mutex<Strangers>,
    /// Addresses whose clients missed breaks.
    addresses: Mutex<Addresses>,
    /// Addresses whose clients are waited for.
    late: LateAddresses,
}

impl Clients {
    /// No clients yet. `server` is the permanent name of this server, the one in the location database: clients find
    /// their record of the server by it.
    pub fn new(
        env: EnvRef,
        rx: &Rx,
        server: Uuid,
        hosts_max: usize,
        promises_max: usize,
        patience: Patience,
    ) -> Arc<Self> {
        let callbacks = Arc::new(Callbacks::new(promises_max, env.random_u64()));
        let hosts = HostTable::new(hosts_max, env.random_u64(), callbacks.clone());
        let rx = rx.downgrade();
        Arc::new(Clients {
            env,
            rx,
            server,
            hosts,
            callbacks,
            patience,
            introductions: Mutex::default(),
            waiting: Arc::default(),
            strangers: Mutex::default(),
            addresses: Mutex::default(),
            late: LateAddresses::default(),
        })
    }

    /// The hosts.
    pub fn hosts(&self) -> &HostTable {
        &self.hosts
    }

    /// The promises.
    pub fn callbacks(&self) -> &Callbacks {
        &self.callbacks
    }

    /// Seconds on the server's own clock, which only goes forward.
    pub fn now(&self) -> u64 {
        self.env.now().as_nanos() / 1_000_000_000
    }

    /// The host that a call comes from, brought in order: known, initialised, and told of every break it is owed.
    /// Nothing of this waits for a host in good standing on a connection that it used before.
    ///
    /// A host that never answers is served once, and promised nothing; after that its calls end with -1 until it can be reached, since
    /// what it caches could not be kept right (docs/protocol callback.md "5.2 On every call").
    pub async fn admit(self: &Arc<Self>, caller: &Caller) -> Result<Arc<Host>, AbortCode> {
        let known = self.hosts.by_connection(caller.peer, caller.connection);
        if let Some(host) = &known {
            host.touch(self.now());
            if host.is_ready() {
                return Ok(host.clone());
            }
        }
        let brought = self.bring_in(caller, known);
        if caller.identity != Identity::Anonymous {
            return brought.await;
        }
        let (_place, gives_way) = self.waiting.enter(caller.peer.ip());
        match select(brought, gives_way).await {
            Either::Left(host) => host,
            Either::Right(_) => Err(AbortCode::VBUSY),
        }
    }

    /// Waits for the client. May be dropped at any point: what was not settled is settled at the next call.
    async fn bring_in(
        self: &Arc<Self>,
        caller: &Caller,
        known: Option<Arc<Host>>,
    ) -> Result<Arc<Host>, AbortCode> {
        if let Some(host) = known {
            self.resume(&host).await?;
            return Ok(host);
        }
        let turn = self.introduction(caller.peer).ok_or(AbortCode::VBUSY)?;
        let _turn = turn.lock.lock().await;
        self.identify(caller).await
    }

    /// Promises to tell `host` before the object changes; answers for how many seconds. Call it before the object is
    /// read for the reply, so that whatever changes it later finds the promise.
    ///
    /// Nothing is promised (`None`) to a host that cannot be called back, or that was late with its last breaks, or is
    /// with one at this moment: it has to ask again each time.
    pub async fn promise(self: &Arc<Self>, fid: Fid, host: &Arc<Host>, grant: Grant) -> Option<u32> {
        let now = self.now();
        let trusted = host.identity() != HostIdentity::Unknown
            && host.with(|state| state.conduct.may_be_promised(now))
            && !self.is_late(host);
        if !trusted {
            return None;
        }
        if self.callbacks.is_full(fid) {
            self.reclaim(fid).await;
        }
        let seconds = self.callbacks.grant(fid, host.id(), grant, self.now());
        if host.is_gone() {
            self.callbacks.revoke(fid, host.id());
            return None;
        }
        Some(seconds)
    }

    /// Takes the oldest promises back when there is no room for another.
    async fn reclaim(self: &Arc<Self>, fid: Fid) {
        let victims = self.callbacks.start_reclaim(fid, self.now(), RECLAIM_STEP);
        let mut breaks = Breaks::default();
        for (fid, host) in victims {
            self.queue_break(fid, host, &mut breaks);
        }
        breaks.answered().await;
    }

    /// The turn of an address, unless too many callers of one machine are being asked.
    fn introduction(&self, peer: SocketAddr) -> Option<Introduction<'_>> {
        let mut introductions = self.introductions.lock();
        let ports = SocketAddr::new(peer.ip(), 0)..=SocketAddr::new(peer.ip(), u16::MAX);
        if !introductions.contains_key(&peer) && introductions.range(ports).count() >= INTRODUCTIONS_MAX {
            return None;
        }
        let lock = introductions.entry(peer).or_insert_with(|| Arc::new(sync::Mutex::new(()))).clone();
        Some(Introduction { clients: self, peer, lock })
    }
}

/// The turn of an address that is being asked, for one of its calls.
struct Introduction<'a> {
    clients: &'a Clients,
    peer: SocketAddr,
    lock: Arc<sync::Mutex<()>>,
}

impl Drop for Introduction<'_> {
    fn drop(&mut self) {
        let mut introductions = self.clients.introductions.lock();
        // The map's and ours: nobody else waits for this turn.
        if Arc::strong_count(&self.lock) <= 2 {
            introductions.remove(&self.peer);
        }
    }
}
