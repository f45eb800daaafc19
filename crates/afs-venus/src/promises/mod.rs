//! Promises: what servers would tell of, what has ended, and who must forget then.
//!
//! Holds the status cache together with the line of breaks: an object that leaves the cache owes its promise to a server, and
//! every end of a promise is told to [`crate::kernel`]. Makes no calls: where a call is needed, it gives out what is to be called for.

mod breaks;
mod clock;
mod give_ups;
mod public;
mod replies;
mod rights;

pub(crate) use clock::SLACK;
pub(crate) use replies::{ChangeReply, ReplyOrigin};

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use afs_rpc::{EnvRef, Instant};
use parking_lot::Mutex;

use crate::config::Limits;
use crate::counters::Counters;
use crate::identity::Identity;
use crate::kernel::KernelCaches;
use crate::key::Key;
use crate::location::{Location, Server, Volume};
use crate::promise::{BreakCounter, ServerReset};
use crate::vnode::{Vnode, VnodeTable};
use give_ups::GiveUps;

/// What the promises are about, and those who hear of their ends.
pub(crate) struct Parts {
    pub env: EnvRef,
    pub counters: Arc<Counters>,
    pub identity: Arc<Identity>,
    pub location: Arc<Location>,
    pub kernel: Arc<KernelCaches>,
    pub vnodes: Arc<VnodeTable>,
}

/// The promises of all servers.
pub(crate) struct Promises {
    parts: Parts,
    /// How often the clocks are looked at.
    tick: Duration,
    /// For how long rights of a token's holder count.
    rights_max_age: Duration,
    /// Promises are not relied on for so long before the server forgets them.
    margin: Duration,
    breaks: BreakCounter,
    give_ups: Mutex<GiveUps>,
    /// When the clocks were last looked at, in nanoseconds; 0 before that.
    clocks_read_at: AtomicU64,
}

impl Promises {
    /// Nothing is promised yet.
    pub fn new(parts: Parts, limits: &Limits) -> Self {
        Promises {
            parts,
            tick: limits.maintenance,
            rights_max_age: limits.rights_max_age,
            margin: limits.promise_margin,
            breaks: BreakCounter::default(),
            give_ups: Mutex::default(),
            clocks_read_at: AtomicU64::new(0),
        }
    }

    /// The number of the last break: what a call notes before it begins.
    pub fn serial(&self) -> u64 {
        self.breaks.last()
    }

    /// The object, in the cache from now on. What leaves the cache for it owes its promise.
    pub fn object(&self, key: Key) -> Arc<Vnode> {
        let (vnode, dropped) = self.parts.vnodes.get_or_make(key);
        dropped.iter().for_each(|vnode| self.left_cache(vnode));
        vnode
    }

    /// An object has left the status cache for want of room: the promise is given back, and the kernel must not rely on
    /// it any more.
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

    /// A promise that we do not need any more is given back soon.
    fn queue_give_up(&self, key: Key, server: &ServerReset) {
        let mut servers = self.parts.location.servers().all().into_iter().enumerate();
        if let Some((place, server)) = servers.find(|(_, known)| known.reset.is_same(server)) {
            self.give_ups.lock().add(place, server, key);
        }
    }

    /// What is to be given back, each once: the objects, by the server that promised.
    pub fn take_give_ups(&self) -> Vec<(Arc<Server>, Vec<Key>)> {
        self.give_ups.lock().take()
    }

    /// Those of some objects that are out of the cache at this moment.
    pub fn unused(&self, keys: &[Key]) -> Vec<Key> {
        keys.iter().copied().filter(|key| self.parts.vnodes.peek(*key).is_none()).collect()
    }

    /// Ends the promises of objects that end before `soon`, at most `max` of them.
    pub fn end_due(&self, soon: Instant, max: usize) {
        for key in self.parts.vnodes.take_expired(soon, max) {
            if let Some(vnode) = self.parts.vnodes.peek(key) {
                vnode.state().promise = None;
                self.invalidate(key);
            }
        }
    }

    /// Volumes that are promised as a whole, until `soon` or before: the promise is to be asked for anew.
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
