//! Calls to clients: identification, callback breaks, and detection of dead clients (docs/protocol
//! callback.md "5. What a file server does").

mod breaks;
mod identify;
mod identifying;
mod late_breaks;
mod messages;
mod pasts;
mod recalls;
mod resume;
mod rights;
mod sweep;
mod unidentified;
mod waiting_calls;

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::future::{Either, select};
use afs_rpc::{Caller, EnvExt, EnvRef, Identity, Rx, WeakRx};
use afs_wire::error::AbortCode;
use afs_wire::ids::{Fid, Uuid};
use parking_lot::Mutex;

use crate::callbacks::{Callbacks, Grant};
use crate::hosts::{AddressMisses, Host, HostIdentity, HostTable};
use crate::leases::Leases;
pub(crate) use breaks::BreakQueue;
pub use breaks::Breaks;
use identifying::Identifying;
use late_breaks::LateAddresses;
use pasts::Pasts;
pub(crate) use rights::KeptRights;
use unidentified::Unidentified;
use waiting_calls::WaitingCalls;

/// Time-outs for calls to clients.
#[derive(Clone, Copy, Debug)]
pub struct ClientTimeouts {
    /// For its identity, or a reset, at first contact. Default 20 s.
    pub identify: Duration,
    /// For a break; the caller that changed the object waits for it. A client that was late before has less:
    /// half, then a quarter. Default 4 s.
    pub break_reply: Duration,
    /// For a probe. Default 2 s.
    pub probe: Duration,
}

impl Default for ClientTimeouts {
    fn default() -> Self {
        ClientTimeouts {
            identify: Duration::from_secs(20),
            break_reply: Duration::from_secs(4),
            probe: Duration::from_secs(2),
        }
    }
}

/// Promises reclaimed at a time when the table is full.
const RECLAIM_STEP: usize = 64;

/// All clients of a file server: their identities, promises and routes.
pub struct Clients {
    env: EnvRef,
    /// Weak: the transport holds the services, which hold this, so a strong handle would be a cycle.
    rx: WeakRx,
    server: Uuid,
    hosts: HostTable,
    callbacks: Arc<Callbacks>,
    leases: Arc<Leases>,
    pasts: Pasts,
    timeouts: ClientTimeouts,
    identifying: Identifying,
    /// Calls that wait for their clients.
    waiting: Arc<WaitingCalls>,
    /// AddressMisses that did not give their identity.
    unidentified: Mutex<Unidentified>,
    /// AddressMisses whose clients missed breaks.
    addresses: Mutex<AddressMisses>,
    /// AddressMisses whose breaks are late.
    late: LateAddresses,
}

impl Clients {
    /// An empty table of clients. `server` is the permanent name of this server, the one in the location
    /// database: clients find their record of the server by it.
    pub fn new(
        env: EnvRef,
        rx: &Rx,
        server: Uuid,
        hosts_max: usize,
        promises_max: usize,
        timeouts: ClientTimeouts,
    ) -> Arc<Self> {
        let callbacks = Arc::new(Callbacks::new(promises_max, env.random_u64()));
        let hosts = HostTable::new(hosts_max, env.random_u64(), callbacks.clone());
        let leases = Leases::new(env.random_u64());
        let rx = rx.downgrade();
        Arc::new(Clients {
            env,
            rx,
            server,
            hosts,
            callbacks,
            leases,
            pasts: Pasts::default(),
            timeouts,
            identifying: Identifying::default(),
            waiting: Arc::default(),
            unidentified: Mutex::default(),
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

    /// The leases of directories.
    pub(crate) fn leases(&self) -> &Arc<Leases> {
        &self.leases
    }

    /// Whether a client may rely on promises, and be lent directories: it can be called back, and is not late.
    pub(crate) fn is_trusted(&self, host: &Host) -> bool {
        let now = self.now();
        host.identity() != HostIdentity::Unknown
            && host.with(|state| state.misses.may_be_promised(now))
            && !self.is_late(host)
    }

    /// Seconds on the server's own monotonic clock.
    pub fn now(&self) -> u64 {
        self.env.now().as_nanos() / 1_000_000_000
    }

    /// The host that a call comes from, ready for the call: identified, reset, and notified of every delayed
    /// break. Nothing of this waits for a ready host on a connection that it used before.
    ///
    /// A host that never replies is served once, without promises; after that its calls end with -1 until it
    /// can be reached, because its cache could not be kept valid (docs/protocol callback.md "5.2 On every
    /// call").
    pub async fn admit(self: &Arc<Self>, caller: &Caller) -> Result<Arc<Host>, AbortCode> {
        let known = self.hosts.by_connection(caller.peer, caller.connection);
        if let Some(host) = &known {
            host.touch(self.now());
            if host.is_ready() {
                return Ok(host.clone());
            }
        }
        let brought = self.prepare(caller, known);
        if caller.identity != Identity::Anonymous {
            return brought.await;
        }
        let (_place, gives_way) = self.waiting.enter(caller.peer.ip());
        match select(brought, gives_way).await {
            Either::Left(host) => host,
            Either::Right(_) => Err(AbortCode::VBUSY),
        }
    }

    /// Waits for the client. Cancel-safe: whatever was not completed is done at the next call.
    async fn prepare(
        self: &Arc<Self>,
        caller: &Caller,
        known: Option<Arc<Host>>,
    ) -> Result<Arc<Host>, AbortCode> {
        if let Some(host) = known {
            self.resume(&host).await?;
            return Ok(host);
        }
        let lock = self.identifying.lock(caller.peer).ok_or(AbortCode::VBUSY)?;
        let _turn = lock.turn().await;
        self.identify(caller).await
    }

    /// Grants `host` a promise; returns its lifetime in seconds. Must precede the read of the object for the
    /// reply, so that any later change finds the promise.
    ///
    /// Returns `None` for a host that cannot be called back, that was late with its last breaks, or that is
    /// late with one now, for an object of which another client has the lease, and where the table has no room: it has to fetch the status
    /// each time.
    pub async fn promise(self: &Arc<Self>, fid: Fid, host: &Arc<Host>, grant: Grant) -> Option<u32> {
        if !self.is_trusted(host) {
            return None;
        }
        if self.callbacks.is_full(fid) {
            self.reclaim(fid).await;
        }
        let grant = || self.callbacks.grant_if_room(fid, host.id(), grant, self.now());
        let seconds = self.leases.unless_lent(fid, host.id(), grant)??;
        if host.is_removed() {
            self.callbacks.revoke(fid, host.id());
            return None;
        }
        Some(seconds)
    }

    /// Reclaims the oldest promises when the table is full.
    async fn reclaim(self: &Arc<Self>, fid: Fid) {
        let victims = self.callbacks.start_reclaim(fid, self.now(), RECLAIM_STEP);
        let mut breaks = Breaks::default();
        for (fid, host) in victims {
            self.queue_break(fid, host, &mut breaks);
        }
        breaks.answered().await;
    }
}
