//! One client machine.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use afs_rpc::sync::Notify;
use afs_rpc::{ConnKey, Security};
use afs_wire::ids::Uuid;
use parking_lot::Mutex;

use super::conduct::Conduct;
use super::id::{HostId, Number};
use crate::callbacks::Callbacks;
use crate::clients::BreakQueue;
use crate::locks::Holder;

/// Addresses from which one host may be known to call, and other ways to reach it, each at most.
pub(crate) const ADDRESSES_MAX: usize = 32;
/// Verified Rx connections remembered for one host. An older one is verified again when it is used again.
pub(crate) const CONNECTIONS_MAX: usize = 64;

/// What a host says it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostIdentity {
    /// It did not answer when it was asked. It is promised nothing, and is in no table.
    Unknown,
    /// It answered that it cannot tell: an old client, known by its address alone.
    Nameless,
    /// It has a permanent name.
    Uuid(Uuid),
}

/// A client machine: what it was promised hangs on its number, and goes when the host goes.
pub struct Host {
    number: Number,
    /// Where it called from first.
    first: SocketAddr,
    /// Whether its permanent name leads to it, and not to another host that uses the same.
    pub(super) bears_name: AtomicBool,
    /// Whether one of its connections has proven a name.
    pub(super) proven: AtomicBool,
    /// It is in the table no longer: a promise given to it now would be broken to nobody.
    pub(super) gone: AtomicBool,
    /// Up and initialised: its calls need no ceremony.
    ready: AtomicBool,
    translates: AtomicBool,
    last_call: AtomicU64,
    state: Mutex<HostState>,
    /// Held by whoever brings the host's state in order, so that two calls do not do it at once.
    pub(crate) turn: afs_rpc::sync::Mutex<()>,
    pub(crate) queue: Mutex<BreakQueue>,
    /// Tells who waits for its answer that it was found dead.
    pub(crate) fell: Notify,
    callbacks: Arc<Callbacks>,
}

/// How a host stands (docs/protocol callback.md "8. Delayed callbacks — state machine per host").
#[derive(Debug)]
pub(crate) struct HostState {
    pub(crate) identity: HostIdentity,
    /// Where callbacks go: the address and port that answered last.
    pub(crate) destination: SocketAddr,
    /// From where it calls.
    pub(crate) peers: Vec<SocketAddr>,
    /// Other ways to reach it, as it says itself; never used to recognise it.
    pub(crate) alternates: Vec<SocketAddr>,
    /// It does not answer.
    pub(crate) down: bool,
    /// Breaks that it has left unanswered for a while, and that are waited for.
    pub(crate) late: usize,
    /// It has been told to forget what an earlier life of this server promised.
    pub(crate) reset: bool,
    /// Another host uses the same permanent name, or used it: promises of the client that bears it may hang on either.
    pub(crate) shares_name: bool,
    /// How it has taken its breaks.
    pub(crate) conduct: Conduct,
    /// With which security it is called back: what the last connection brought that brought any. Only who answers with it is
    /// taken for this host.
    pub(crate) callback: Option<Security>,
    /// Its Rx connections whose identity was asked for.
    pub(crate) connections: VecDeque<(SocketAddr, ConnKey)>,
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
            bears_name: AtomicBool::new(false),
            proven: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            ready: AtomicBool::new(false),
            translates: AtomicBool::new(false),
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
                conduct: Conduct::default(),
                callback: None,
                connections: VecDeque::new(),
            }),
            turn: afs_rpc::sync::Mutex::new(()),
            queue: Mutex::new(BreakQueue::default()),
            fell: Notify::new(),
            callbacks,
        }
    }

    /// Its number in the tables of this server.
    pub fn id(&self) -> HostId {
        self.number.id()
    }

    /// The address that its place in the table is counted for.
    pub(super) fn address(&self) -> IpAddr {
        self.first.ip()
    }

    /// As the holder of a lock: by its permanent name, if that is its own.
    pub(crate) fn holder(&self) -> Holder {
        match self.identity() {
            HostIdentity::Uuid(uuid) if self.bears_name.load(Ordering::Relaxed) => Holder::Uuid(uuid),
            _ => Holder::Address(self.first),
        }
    }

    /// As whom it may hold locks that it took before its permanent name was known to be its own.
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

    /// Seconds of the server's own clock at its last call.
    pub fn last_call(&self) -> u64 {
        self.last_call.load(Ordering::Relaxed)
    }

    pub(crate) fn touch(&self, now: u64) {
        self.last_call.store(now, Ordering::Relaxed);
    }

    /// Whether its calls need no ceremony.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Whether it does not answer.
    pub fn is_down(&self) -> bool {
        self.with(|state| state.down)
    }

    /// It does not answer: who waits for it need not any longer. Answers whether it was up.
    pub(crate) fn fall(&self) -> bool {
        let was_up = self.with(|state| !std::mem::replace(&mut state.down, true));
        self.fell.notify_waiters();
        was_up
    }

    /// Whether one of its connections has proven a name.
    pub(crate) fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Relaxed)
    }

    /// Whether it is in the table no longer.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    /// Whether it is known to call from an address.
    pub(crate) fn calls_from(&self, peer: SocketAddr) -> bool {
        self.with(|state| state.peers.contains(&peer))
    }

    /// What it says it is.
    pub fn identity(&self) -> HostIdentity {
        self.with(|state| state.identity)
    }

    /// Where callbacks go.
    pub fn destination(&self) -> SocketAddr {
        self.with(|state| state.destination)
    }

    /// How to prove to it who calls it back, if it told.
    pub(crate) fn callback(&self) -> Option<Security> {
        self.with(|state| state.callback.clone())
    }

    /// Looks at or changes the state, under its lock. Nothing may wait in there.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut HostState) -> T) -> T {
        let mut state = self.state.lock();
        let value = look(&mut state);
        self.ready.store(!state.down && state.reset, Ordering::Release);
        value
    }
}

impl Drop for Host {
    /// A call that was still running may have been given promises after the host was removed from the tables; they must
    /// not pass to the next holder of the number.
    fn drop(&mut self) {
        self.callbacks.forget_host(self.id());
    }
}
