//! Talking to clients: getting to know them, breaking what they were promised, finding out who is gone
//! (docs/protocol callback.md "5. What a file server does").

mod breaks;
mod contact;
mod messages;
mod resume;
mod strangers;
mod sweep;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use afs_rpc::{Caller, EnvExt, EnvRef, Rx, WeakRx};
use afs_wire::error::AbortCode;
use afs_wire::ids::{Fid, Uuid};

use crate::callbacks::{Callbacks, Grant};
use crate::hosts::{Addresses, Host, HostIdentity, HostTable};
pub(crate) use breaks::BreakQueue;
pub use breaks::Breaks;
use strangers::Strangers;

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
    introductions: Mutex<BTreeMap<SocketAddr, Arc<afs_rpc::sync::Mutex<()>>>>,
    /// Addresses that were asked and did not answer.
    strangers: Mutex<Strangers>,
    /// Addresses whose clients missed breaks.
    addresses: Mutex<Addresses>,
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
            strangers: Mutex::default(),
            addresses: Mutex::default(),
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
        if let Some(host) = self.hosts.by_connection(caller.peer, caller.connection) {
            host.touch(self.now());
            if host.is_ready() {
                return Ok(host);
            }
            self.resume(&host).await?;
            return Ok(host);
        }
        let turn = self.introduction(caller.peer).ok_or(AbortCode::VBUSY)?;
        let host = {
            let _turn = turn.lock().await;
            self.identify(caller).await
        };
        self.forget_introduction(caller.peer, turn);
        host
    }

    /// Promises to tell `host` before the object changes; answers for how many seconds. Call it before the object is
    /// read for the reply, so that whatever changes it later finds the promise.
    ///
    /// Nothing is promised (`None`) to a host that cannot be called back, or that was late with its last breaks: it has to ask
    /// again each time.
    pub async fn promise(self: &Arc<Self>, fid: Fid, host: &Arc<Host>, grant: Grant) -> Option<u32> {
        let now = self.now();
        if host.identity() == HostIdentity::Unknown || !host.with(|state| state.conduct.may_be_promised(now))
        {
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
    fn introduction(&self, peer: SocketAddr) -> Option<Arc<afs_rpc::sync::Mutex<()>>> {
        let mut introductions = self.introductions.lock().unwrap_or_else(PoisonError::into_inner);
        let ports = SocketAddr::new(peer.ip(), 0)..=SocketAddr::new(peer.ip(), u16::MAX);
        if !introductions.contains_key(&peer) && introductions.range(ports).count() >= INTRODUCTIONS_MAX {
            return None;
        }
        Some(introductions.entry(peer).or_insert_with(|| Arc::new(afs_rpc::sync::Mutex::new(()))).clone())
    }

    fn forget_introduction(&self, peer: SocketAddr, turn: Arc<afs_rpc::sync::Mutex<()>>) {
        let mut introductions = self.introductions.lock().unwrap_or_else(PoisonError::into_inner);
        // The map's and ours: nobody else waits for this turn.
        if Arc::strong_count(&turn) <= 2 {
            introductions.remove(&peer);
        }
    }
}
