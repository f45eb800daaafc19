//! Promises: what is valid and for how long, which promises have ended, and the invalidations that follow.
//!
//! Has the status cache together with the sequence of breaks: an object that leaves the cache has its promise given
//! back, and every end of a promise is passed to [`crate::kernel`]. Makes no calls: it returns what must be called for.

mod breaks;
mod clock;
mod give_ups;
mod public;
mod replies;
mod rights;
mod unwatched;

pub(crate) use clock::SLACK;
pub(crate) use replies::{ChangeReply, ReplyOrigin};

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use afs_rpc::{EnvRef, Instant};
use afs_wire::ids::{Fid, VolumeId};
use parking_lot::Mutex;

use crate::config::Limits;
use crate::counters::Counters;
use crate::identity::Identity;
use crate::kernel::KernelCaches;
use crate::key::{CellIndex, Key, NodeTarget};
use crate::location::{Location, Server, Volume};
use crate::promise::{BreakCounter, ServerReset};
use crate::residency::Pins;
use crate::vnode::{Vnode, VnodeTable};
use give_ups::GiveUps;

/// The other parts that promises need.
pub(crate) struct Parts {
    pub env: EnvRef,
    pub counters: Arc<Counters>,
    pub identity: Arc<Identity>,
    pub location: Arc<Location>,
    pub kernel: Arc<KernelCaches>,
    pub vnodes: Arc<VnodeTable>,
    pub pins: Arc<Pins>,
}

/// Promises of all servers.
pub(crate) struct Promises {
    parts: Parts,
    /// Interval at which the clocks are read.
    tick: Duration,
    /// Lifetime of the rights of a token's owner.
    rights_max_age: Duration,
    /// Promises end this long before their end at the server.
    margin: Duration,
    breaks: BreakCounter,
    /// Number of the last break of the rights of users.
    rights_broken: AtomicU64,
    give_ups: Mutex<GiveUps>,
    /// Files that a kernel reads without asking, whose promise has ended. Bounded by the open files.
    unwatched: Mutex<BTreeSet<Key>>,
    /// When the clocks were last read, in nanoseconds; 0 before that.
    clocks_read_at: AtomicU64,
}

impl Promises {
    /// Makes the part without promises.
    pub fn new(parts: Parts, limits: &Limits) -> Self {
        Promises {
            parts,
            tick: limits.maintenance,
            rights_max_age: limits.rights_max_age,
            margin: limits.promise_margin,
            breaks: BreakCounter::default(),
            rights_broken: AtomicU64::new(0),
            give_ups: Mutex::default(),
            unwatched: Mutex::default(),
            clocks_read_at: AtomicU64::new(0),
        }
    }

    /// Number of the last break, recorded by a call before it begins.
    pub fn serial(&self) -> u64 {
        self.breaks.last()
    }

    /// The object, in the cache from now on. The promises of objects evicted for it are queued to be given back.
    pub fn object(&self, key: Key) -> Arc<Vnode> {
        let (vnode, dropped) = self.parts.vnodes.get_or_make(key);
        dropped.iter().for_each(|vnode| self.left_cache(vnode));
        vnode
    }

    /// Invalidates an object evicted from the status cache, and queues its promise to be given back.
    fn left_cache(&self, vnode: &Vnode) {
        let (promise, had_status) = {
            let mut state = vnode.state();
            state.directory = None;
            (state.promise.take(), state.status.take().is_some())
        };
        if had_status {
            self.invalidate(vnode.key);
        }
        if let Some(promise) = promise {
            self.queue_give_up(vnode.key, &promise.server);
        }
    }

    /// Queues a promise that is not needed any more.
    fn queue_give_up(&self, key: Key, server: &ServerReset) {
        let mut servers = self.parts.location.servers().all().into_iter().enumerate();
        if let Some((place, server)) = servers.find(|(_, known)| known.reset.is_same(server)) {
            self.give_ups.lock().add(place, server, key);
        }
    }

    /// Takes the queued objects, by the server that gave the promise.
    pub fn take_give_ups(&self) -> Vec<(Arc<Server>, Vec<Key>)> {
        self.give_ups.lock().take()
    }

    /// Those of some objects that are not in the cache now.
    pub fn unused(&self, keys: &[Key]) -> Vec<Key> {
        keys.iter().copied().filter(|key| self.parts.vnodes.peek(*key).is_none()).collect()
    }

    /// Ends promises that expire before `soon`, at most `max` of them.
    pub fn end_due(&self, soon: Instant, max: usize) {
        for key in self.parts.vnodes.take_expired(soon, max) {
            if let Some(vnode) = self.parts.vnodes.peek(key) {
                vnode.state().promise = None;
                self.ended(&vnode);
            }
        }
    }

    /// Whether the kernel has the root of a volume, or anything of it is in the status cache: breaks of the volume must be noted.
    pub fn is_in_use(&self, cell: CellIndex, volume: VolumeId) -> bool {
        let root = NodeTarget::Object(Key::new(cell, Fid::root(volume)));
        self.parts.vnodes.has_any_of(cell, volume) || self.parts.kernel.nodes().held(root).is_some()
    }

    /// Volumes with one promise for all objects that ends at `soon` or before: the promise must be renewed.
    pub fn volumes_due(&self, soon: Instant) -> Vec<Arc<Volume>> {
        let is_due = |volume: &Arc<Volume>| {
            !volume.is_writable() && volume.promised_until().is_some_and(|until| until <= soon)
        };
        let mut due = self.parts.location.volumes().all();
        due.retain(is_due);
        due
    }
}

#[cfg(test)]
mod tests;
