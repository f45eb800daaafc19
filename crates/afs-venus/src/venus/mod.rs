//! The cache manager as its users see it.

mod access;
mod attributes;
mod callbacks;
mod calls;
mod clock;
mod closing;
mod directory;
mod failed_open;
mod fetch;
mod holes;
mod late_release;
mod leftover_locks;
mod listing;
mod lock_keeping;
mod locking;
mod lookup;
mod maintenance;
mod namespace;
mod newest_version;
mod open;
mod reading;
mod remove;
mod removed;
mod rights_refresh;
mod sending;
mod sending_ranges;
mod snapshots;
mod space;
mod stale;
mod start;
mod status;
mod store;
mod store_check;
mod store_reason;
mod tokens;
mod writing;
mod xattr;

use std::ops::Deref;
use std::sync::Arc;

use afs_rpc::EnvRef;
use afs_rpc::sync::Notify;
use afs_wire::ids::{UnixSeconds, Uuid};

use crate::api::NodeId;
use crate::calls::{CallContext, Calls};
use crate::config::Limits;
use crate::counters::{CounterValues, Counters};
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Files;
use crate::identity::Identity;
use crate::kernel::KernelCaches;
use crate::key::{Key, NodeTarget};
use crate::leftover_locks::LeftoverLocks;
use crate::location::{Cell, Location};
use crate::names::Names;
use crate::promises::Promises;
use crate::transfer::Transfer;
use crate::vnode::{Vnode, VnodeTable};

/// The cache manager, speaking for somebody: for its own user at first, see [`Venus::on_behalf_of`]. All methods may be
/// called from many tasks at once; dropping a returned future gives the operation up where it stands, which never harms
/// the cache. What is done through a handle is done for whoever opened it.
pub struct Venus {
    shared: Arc<Shared>,
    context: CallContext,
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
    kernel: Arc<KernelCaches>,
    promises: Arc<Promises>,
    calls: Arc<Calls>,
    names: Names,
    files: Files,
    identity: Arc<Identity>,
    counters: Arc<Counters>,
    /// Locks that servers may still have in our name.
    leftover_locks: LeftoverLocks,
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
    pub fn invalidations(&self) -> u64 {
        self.kernel.invalidations()
    }

    /// How many objects the status cache holds.
    pub fn statuses(&self) -> usize {
        self.vnodes.count()
    }

    /// Gives back `lookups` look-ups of a node. At zero the node id may be forgotten.
    pub fn forget(&self, node: NodeId, lookups: u64) {
        self.kernel.nodes().forget(node, lookups);
    }

    /// How many look-ups of a node have not been given back.
    pub fn lookups(&self, node: NodeId) -> u64 {
        self.kernel.nodes().lookups(node)
    }

    fn wall(&self) -> UnixSeconds {
        UnixSeconds(self.env.wall().secs_u32())
    }

    fn node_target(&self, node: NodeId) -> Result<NodeTarget> {
        self.kernel.nodes().node_target(node).ok_or(VenusError::new(ErrorKind::Stale, "node"))
    }

    /// The object of a node; the synthetic root is none.
    fn key(&self, node: NodeId, operation: &'static str) -> Result<Key> {
        match self.node_target(node)? {
            NodeTarget::Object(key) => Ok(key),
            NodeTarget::Cells | NodeTarget::Snapshots(..) => {
                Err(VenusError::new(ErrorKind::ReadOnly, operation))
            }
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
