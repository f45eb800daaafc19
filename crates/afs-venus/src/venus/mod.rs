//! The cache manager as its users see it.

mod access;
mod attributes;
mod breaks;
mod callbacks;
mod calls;
mod clock;
mod closing;
mod directory;
mod fetch;
mod giving_back;
mod gone;
mod holes;
mod late_release;
mod listing;
mod lock_keeping;
mod locking;
mod lookup;
mod maintenance;
mod namespace;
mod occasion;
mod open;
mod read_back;
mod reading;
mod reask;
mod refused;
mod remove;
mod renewing;
mod sending;
mod sending_ranges;
mod snapshots;
mod space;
mod start;
mod status;
mod store;
mod tokens;
mod writing;
mod xattr;

use std::ops::Deref;
use std::sync::Arc;

use afs_rpc::EnvRef;
use afs_rpc::sync::Notify;
use afs_wire::ids::{UnixSeconds, Uuid};

use crate::above::Above;
use crate::api::NodeId;
use crate::asking::{Asker, Asking};
use crate::config::Limits;
use crate::counters::{CounterValues, Counters};
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Files;
use crate::identity::Identity;
use crate::key::{Key, Place};
use crate::location::{Cell, Location};
use crate::names::Names;
use crate::owed_locks::OwedLocks;
use crate::promises::Promises;
use crate::transfer::Transfer;
use crate::vnode::{Vnode, VnodeTable};

/// The cache manager, speaking for somebody: for its own user at first, see [`Venus::on_behalf_of`]. All methods may be
/// called from many tasks at once; dropping a returned future gives the operation up where it stands, which never harms
/// the cache. What is done through a handle is done for whoever opened it.
pub struct Venus {
    shared: Arc<Shared>,
    asker: Asker,
}

impl Deref for Venus {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// What is one for all users of a mount.
#[doc(hidden)]
pub struct Shared {
    env: EnvRef,
    limits: Limits,
    uuid: Uuid,
    /// How bytes of files come and go.
    transfer: Arc<dyn Transfer>,
    location: Arc<Location>,
    vnodes: Arc<VnodeTable>,
    above: Arc<Above>,
    promises: Arc<Promises>,
    asking: Arc<Asking>,
    names: Names,
    files: Files,
    identity: Arc<Identity>,
    counters: Arc<Counters>,
    /// Locks that servers may still have in our name.
    owed_locks: OwedLocks,
    wake: Arc<Notify>,
}

impl Venus {
    /// What was counted since the start.
    pub fn counters(&self) -> CounterValues {
        self.counters.values()
    }

    /// A number that grows whenever something has become stale, whether anybody held it (and the sink was told) or not,
    /// and whenever something was answered that no server promised.
    ///
    /// An answer of Venus may be overtaken by the news that it is stale. Whoever hands answers on to a cache that keeps
    /// them without limit reads this number before the operation and again after handing on, and if it has grown,
    /// treats what was just handed on as stale.
    pub fn told(&self) -> u64 {
        self.above.told()
    }

    /// How many objects the status cache holds.
    pub fn statuses(&self) -> usize {
        self.vnodes.count()
    }

    /// Gives back `lookups` look-ups of a node. At zero the node id may be forgotten.
    pub fn forget(&self, node: NodeId, lookups: u64) {
        self.above.nodes().forget(node, lookups);
    }

    /// How many look-ups of a node have not been given back.
    pub fn lookups(&self, node: NodeId) -> u64 {
        self.above.nodes().lookups(node)
    }

    fn wall(&self) -> UnixSeconds {
        UnixSeconds(self.env.wall().secs_u32())
    }

    fn place(&self, node: NodeId) -> Result<Place> {
        self.above.nodes().place(node).ok_or(VenusError::new(ErrorKind::Stale, "node"))
    }

    /// The object of a node; the synthetic root is none.
    fn key(&self, node: NodeId, operation: &'static str) -> Result<Key> {
        match self.place(node)? {
            Place::Object(key) => Ok(key),
            Place::Cells | Place::Snapshots(..) => Err(VenusError::new(ErrorKind::ReadOnly, operation)),
        }
    }

    /// The object, in the cache from now on.
    fn vnode(&self, key: Key) -> Arc<Vnode> {
        self.promises.object(key)
    }

    fn cell(&self, key: Key) -> Result<&Cell> {
        self.location.cell(key.cell).ok_or(VenusError::new(ErrorKind::NoVolume, "cell"))
    }
}

#[cfg(test)]
mod cut_streams;
