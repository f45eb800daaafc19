//! The cache manager: its public type, and the operations in the files of this folder.

mod access;
mod access_lists;
mod activity;
mod admission;
mod attributes;
mod bulk_status;
mod callbacks;
mod calls;
mod cells;
mod clock;
mod closing;
mod directory;
mod explaining;
mod failed_open;
mod fetch;
mod flushing;
mod growing;
mod holes;
mod keeping;
mod late_release;
mod leasing;
mod leftover_locks;
mod listed;
mod listing;
mod lock_keeping;
mod locking;
mod looks;
mod lookup;
mod maintenance;
mod namespace;
mod neighbours;
mod newest_version;
mod offline;
mod offline_records;
mod once;
mod open;
mod pasts;
mod pinning;
mod properties;
mod reachable;
mod read_ahead;
mod reading;
mod reading_past;
mod recovering;
mod remove;
mod removed;
mod rename;
mod residency;
mod restoring;
mod retry_orders;
mod revalidation;
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
mod together;
mod tokens;
mod unwatched;
mod volume_settings;
mod writing;

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use afs_rpc::EnvRef;
use afs_rpc::sync::Notify;
use afs_wire::ids::{FileTime, UnixSeconds, Uuid};

use crate::api::NodeId;
use crate::bypass::Windows;
use crate::calls::{CallContext, Calls};
use crate::config::Limits;
use crate::counters::{CounterValues, Counters};
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Files;
use crate::identity::Identity;
use crate::kernel::KernelCaches;
use crate::key::{Key, NodeTarget};
use crate::leases::Leases;
use crate::leftover_locks::LeftoverLocks;
use crate::location::{Cell, CellFinder, Location};
use crate::lock_waits::LockWaits;
use crate::names::Names;
use crate::promises::Promises;
use crate::residency::Pins;
use crate::retry_orders::RetryOrders;
use crate::rounds::Rounds;
use crate::transfer::Transfer;
use crate::vnode::{Vnode, VnodeTable};

/// The cache manager, acting for one user: at first its own, see [`Venus::on_behalf_of`]. All methods may be called
/// from many tasks at once; dropping a returned future abandons the operation at its present step, which never damages
/// the cache. Operations on a handle use the token of the user who opened it.
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

/// State shared by all users of a mount.
#[doc(hidden)]
pub struct Shared {
    env: EnvRef,
    limits: Limits,
    uuid: Uuid,
    /// Route of file data.
    transfer: Arc<dyn Transfer>,
    /// Memory for what is read past the disk cache.
    windows: Arc<Windows>,
    location: Arc<Location>,
    /// Finder of the cells that are not in the table of locations yet.
    cells: Arc<CellFinder>,
    vnodes: Arc<VnodeTable>,
    kernel: Arc<KernelCaches>,
    promises: Arc<Promises>,
    calls: Arc<Calls>,
    names: Names,
    /// Changes of names in progress, by directory.
    rounds: Arc<Rounds>,
    /// Leases of directories.
    leases: Leases,
    files: Files,
    identity: Arc<Identity>,
    counters: Arc<Counters>,
    pins: Arc<Pins>,
    /// Stores by the order of users.
    retry_orders: RetryOrders,
    /// Locks that servers may still hold for this client.
    leftover_locks: LeftoverLocks,
    /// Who waits for which lock.
    lock_waits: LockWaits,
    /// Tells whether a signal ends the wait of a process.
    signalled: OnceLock<fn(u32) -> bool>,
    wake: Arc<Notify>,
}

impl Venus {
    /// Values of all counters since the start.
    pub fn counters(&self) -> CounterValues {
        self.counters.values()
    }

    /// A number that grows with every invalidation, whether or not the object was held (and the sink notified), and
    /// with every reply that no server promised.
    ///
    /// A reply of Venus may be overtaken by its invalidation. A caller that passes replies on to a cache without a time
    /// limit reads this number before the operation and again after passing the reply on; if it has grown, the caller
    /// treats what it passed on as stale.
    pub fn invalidations(&self) -> u64 {
        self.kernel.invalidations()
    }

    /// Bytes of files in memory that do not go through the disk cache, here or on their way.
    pub fn bypass_bytes(&self) -> u64 {
        self.windows.bytes()
    }

    /// Number of objects in the status cache.
    pub fn statuses(&self) -> usize {
        self.vnodes.count()
    }

    /// Subtracts `lookups` look-ups of a node. At zero the node id may be forgotten.
    pub fn forget(&self, node: NodeId, lookups: u64) {
        self.kernel.nodes().forget(node, lookups);
    }

    /// Number of outstanding look-ups of a node.
    pub fn lookups(&self, node: NodeId) -> u64 {
        self.kernel.nodes().lookups(node)
    }

    fn wall(&self) -> UnixSeconds {
        UnixSeconds(self.env.wall().secs_u32())
    }

    /// The present, as a time of a file.
    fn time(&self) -> FileTime {
        let now = self.env.wall();
        FileTime::new(UnixSeconds(now.secs_u32()), now.nanos)
    }

    fn node_target(&self, node: NodeId) -> Result<NodeTarget> {
        self.kernel.nodes().node_target(node).ok_or(VenusError::new(ErrorKind::Stale, "node"))
    }

    /// The object of a node; an error for a synthetic directory.
    fn key(&self, node: NodeId, operation: &'static str) -> Result<Key> {
        match self.node_target(node)? {
            NodeTarget::Object(key) => Ok(key),
            NodeTarget::Cells | NodeTarget::Snapshots(..) | NodeTarget::Unreached(..) => {
                Err(VenusError::new(ErrorKind::ReadOnly, operation))
            }
        }
    }

    /// The object, in the cache from now on.
    fn vnode(&self, key: Key) -> Arc<Vnode> {
        self.promises.object(key)
    }

    fn cell(&self, key: Key) -> Result<Arc<Cell>> {
        self.location.cell(key.cell).ok_or(VenusError::new(ErrorKind::NoVolume, "cell"))
    }
}

#[cfg(test)]
mod over_path;
