//! Talking to clients: getting to know them, breaking what they were promised, finding out who is gone
//! (docs/protocol callback.md "5. What a file server does").

mod breaks;
mod contact;
mod messages;
mod resume;
mod sweep;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use afs_rpc::{Caller, EnvExt, EnvRef, Rx, WeakRx};
use afs_wire::error::AbortCode;
use afs_wire::ids::{Fid, Uuid};

use crate::callbacks::{Callbacks, Grant};
use crate::hosts::{Host, HostId, HostIdentity, HostTable};
pub(crate) use breaks::BreakQueue;
pub use breaks::Breaks;

/// How long a client may take to answer.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// To say who it is, or to forget everything, at first contact. Default 20 s.
    pub contact: Duration,
    /// To take a broken callback; whoever changed the object waits for it. Default 4 s.
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
        Arc::new(Clients { env, rx, server, hosts, callbacks, patience, introductions: Mutex::default() })
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
    /// A host that never answers is served once; after that its calls end with -1 until it can be reached, since
    /// what it caches could not be kept right (docs/protocol callback.md "5.2 On every call").
    pub async fn admit(self: &Arc<Self>, caller: &Caller) -> Result<Arc<Host>, AbortCode> {
        if let Some(host) = self.hosts.by_connection(caller.peer, caller.connection) {
            host.touch(self.now());
            if host.is_ready() {
                return Ok(host);
            }
            if host.identity() != HostIdentity::Unknown {
                self.resume(&host).await?;
                return Ok(host);
            }
        }
        let turn = self.introduction(caller.peer);
        let host = {
            let _turn = turn.lock().await;
            self.identify(caller).await
        };
        self.forget_introduction(caller.peer, turn);
        host
    }

    /// Promises to tell `host` before the object changes; answers for how many seconds. Call it before the object is
    /// read for the reply, so that whatever changes it later finds the promise.
    pub async fn promise(self: &Arc<Self>, fid: Fid, host: HostId, grant: Grant) -> u32 {
        if self.callbacks.is_full(fid) {
            self.reclaim(fid).await;
        }
        self.callbacks.grant(fid, host, grant, self.now())
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

    fn introduction(&self, peer: SocketAddr) -> Arc<afs_rpc::sync::Mutex<()>> {
        let mut introductions = self.introductions.lock().unwrap_or_else(PoisonError::into_inner);
        introductions.entry(peer).or_insert_with(|| Arc::new(afs_rpc::sync::Mutex::new(()))).clone()
    }

    fn forget_introduction(&self, peer: SocketAddr, turn: Arc<afs_rpc::sync::Mutex<()>>) {
        let mut introductions = self.introductions.lock().unwrap_or_else(PoisonError::into_inner);
        // The map's and ours: nobody else waits for this turn.
        if Arc::strong_count(&turn) <= 2 {
            introductions.remove(&peer);
        }
    }
}
