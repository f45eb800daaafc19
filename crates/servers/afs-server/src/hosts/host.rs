//! Host: the record of one client machine.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use afs_rpc::sync::Notify;
use afs_rpc::{ConnKey, Security};
use afs_wire::ids::Uuid;
use parking_lot::Mutex;

use super::id::{HostId, Number};
use super::misses::Misses;
use crate::callbacks::Callbacks;
use crate::clients::{BreakQueue, KeptRights};
use crate::locks::Holder;

/// Most addresses from which one host may be known to call, and most alternate addresses of one host.
pub(crate) const ADDRESSES_MAX: usize = 32;
/// Verified Rx connections remembered for one host. One dropped from the list is verified again at its next
/// use.
pub(crate) const CONNECTIONS_MAX: usize = 64;

/// The identity of a host, as the client gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostIdentity {
    /// It did not reply to the request for its identity. It is granted no promises, and is in no table.
    Unknown,
    /// It replied that it has no identity: an old client, known by its address alone.
    Nameless,
    /// It has a permanent name.
    Uuid(Uuid),
}

/// A client machine. Its promises are recorded under its id, and removed with the host.
pub struct Host {
    number: Number,
    /// The address of its first call.
    first: SocketAddr,
    /// Whether its permanent name leads to it, and not to another host with the same name.
    pub(super) holds_name: AtomicBool,
    /// Whether one of its connections has authenticated.
    pub(super) authenticated: AtomicBool,
    /// Whether it was removed from the table: a promise granted to it now would be broken to no client.
    pub(super) removed: AtomicBool,
    /// Whether it is up and initialised: its calls need no preparation.
    ready: AtomicBool,
    translates: AtomicBool,
    keeps_rights: AtomicBool,
    last_call: AtomicU64,
    state: Mutex<HostState>,
    /// Held by the task that restores the host to the ready state, so that two calls do not do so at once.
    pub(crate) preparing: afs_rpc::sync::Mutex<()>,
    pub(crate) queue: Mutex<BreakQueue>,
    pub(crate) kept_rights: Mutex<KeptRights>,
    /// Notified when the host is found dead, for tasks that wait for its reply.
    pub(crate) went_down: Notify,
    callbacks: Arc<Callbacks>,
}

/// State of a host (docs/protocol callback.md "8. Delayed callbacks — state machine per host").
#[derive(Debug)]
pub(crate) struct HostState {
    pub(crate) identity: HostIdentity,
    /// Destination of callbacks: the address and port that replied last.
    pub(crate) destination: SocketAddr,
    /// AddressMisses from which it calls.
    pub(crate) peers: Vec<SocketAddr>,
    /// Alternate addresses that the client listed; never used to recognise it.
    pub(crate) alternates: Vec<SocketAddr>,
    /// Whether it is unreachable.
    pub(crate) down: bool,
    /// Late breaks that are still being waited for.
    pub(crate) late: usize,
    /// Whether it was notified that promises of an earlier process of this server are void.
    pub(crate) reset: bool,
    /// Whether another host uses the same permanent name, or used it: promises of the client with that name
    /// may be recorded under either host.
    pub(crate) shares_name: bool,
    /// Its missed and late breaks.
    pub(crate) misses: Misses,
    /// Security of calls to it: the credentials that its last connection with credentials brought. Only a
    /// peer that authenticates with them is accepted as this host.
    pub(crate) callback: Option<Security>,
    /// Its Rx connections that were identified.
    pub(crate) connections: VecDeque<(SocketAddr, ConnKey)>,
}

impl HostState {
    /// Adds an address from which it calls. Beyond the bound the one added first goes, and is returned.
    pub(super) fn add_peer(&mut self, peer: SocketAddr) -> Option<SocketAddr> {
        if self.peers.contains(&peer) {
            return None;
        }
        self.peers.insert(0, peer);
        if self.peers.len() > ADDRESSES_MAX { self.peers.pop() } else { None }
    }
}

impl Host {
    pub(super) fn new(
        number: Number,
        identity: HostIdentity,
        peer: SocketAddr,
        now: u64,
        callbacks: Arc<Callbacks>,
    ) -> Self {
        Host {
            number,
            first: peer,
            holds_name: AtomicBool::new(false),
            authenticated: AtomicBool::new(false),
            removed: AtomicBool::new(false),
            ready: AtomicBool::new(false),
            translates: AtomicBool::new(false),
            keeps_rights: AtomicBool::new(false),
            last_call: AtomicU64::new(now),
            state: Mutex::new(HostState {
                identity,
                destination: peer,
                peers: vec![peer],
                alternates: Vec::new(),
                down: false,
                late: 0,
                reset: false,
                shares_name: false,
                misses: Misses::default(),
                callback: None,
                connections: VecDeque::new(),
            }),
            preparing: afs_rpc::sync::Mutex::new(()),
            queue: Mutex::new(BreakQueue::default()),
            kept_rights: Mutex::default(),
            went_down: Notify::new(),
            callbacks,
        }
    }

    /// Its id in the tables of this server.
    pub fn id(&self) -> HostId {
        self.number.id()
    }

    /// The address under which the table counts it.
    pub(super) fn address(&self) -> IpAddr {
        self.first.ip()
    }

    /// Its name as a lock holder: its permanent name, if that leads to it.
    pub(crate) fn holder(&self) -> Holder {
        match self.identity() {
            HostIdentity::Uuid(uuid) if self.holds_name.load(Ordering::Relaxed) => Holder::Uuid(uuid),
            _ => Holder::Address(self.first),
        }
    }

    /// Names under which it may hold locks from before its permanent name was known to be its own.
    pub(crate) fn earlier_holders(&self) -> Vec<Holder> {
        match self.holder() {
            Holder::Uuid(_) => self.with(|state| state.peers.iter().copied().map(Holder::Address).collect()),
            Holder::Address(_) => Vec::new(),
        }
    }

    /// Whether it understands translated error numbers (docs/protocol fileserver.md "9.2 errno ↔ UAE translation").
    pub fn translates(&self) -> bool {
        self.translates.load(Ordering::Relaxed)
    }

    pub(crate) fn set_translates(&self, translates: bool) {
        self.translates.store(translates, Ordering::Relaxed);
    }

    /// Whether it keeps rights until the break of [`Fid::RIGHTS`](afs_wire::ids::Fid::RIGHTS), and was promised no rights
    /// otherwise.
    pub(crate) fn keeps_rights(&self) -> bool {
        self.keeps_rights.load(Ordering::Relaxed)
    }

    pub(crate) fn set_keeps_rights(&self, keeps_rights: bool) {
        self.keeps_rights.store(keeps_rights, Ordering::Relaxed);
    }

    /// Seconds of the server's own clock at its last call.
    pub fn last_call(&self) -> u64 {
        self.last_call.load(Ordering::Relaxed)
    }

    pub(crate) fn touch(&self, now: u64) {
        self.last_call.store(now, Ordering::Relaxed);
    }

    /// Whether its calls need no preparation.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Whether it is unreachable.
    pub fn is_down(&self) -> bool {
        self.with(|state| state.down)
    }

    /// Marks it down and ends the waits for its reply. Returns whether it was up.
    pub(crate) fn mark_down(&self) -> bool {
        let was_up = self.with(|state| !std::mem::replace(&mut state.down, true));
        self.went_down.notify_waiters();
        was_up
    }

    /// Whether one of its connections has authenticated.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Relaxed)
    }

    /// Whether it was removed from the table.
    pub(crate) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::SeqCst)
    }

    /// Whether it is known to call from an address.
    pub(crate) fn calls_from(&self, peer: SocketAddr) -> bool {
        self.with(|state| state.peers.contains(&peer))
    }

    /// Its identity.
    pub fn identity(&self) -> HostIdentity {
        self.with(|state| state.identity)
    }

    /// Destination of callbacks.
    pub fn destination(&self) -> SocketAddr {
        self.with(|state| state.destination)
    }

    /// Credentials for calls to it, if it brought any.
    pub(crate) fn callback(&self) -> Option<Security> {
        self.with(|state| state.callback.clone())
    }

    /// Runs a closure on the state, under its lock. The closure must not wait.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut HostState) -> T) -> T {
        let mut state = self.state.lock();
        let value = look(&mut state);
        self.ready.store(!state.down && state.reset, Ordering::Release);
        value
    }
}

impl Drop for Host {
    /// A call that was still running may have been granted promises after the host was removed from the
    /// tables; they must not pass to the next host with this id.
    fn drop(&mut self) {
        self.callbacks.forget_host(self.id());
    }
}
