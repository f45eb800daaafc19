//! Start and shutdown of Venus.

use afs_rpc::boxed;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

use afs_rpc::{EnvRef, ServerSecurity};
use afs_wire::ids::{Fid, VolumeName};
use afs_wire::mountpoint::Choice;
use afs_wire::volname;

use crate::api::TokenOwner;
use crate::bypass::Windows;
use crate::calls::{self, CallContext, Calls};
use crate::config::{DataPathConfig, RootKind, SecurityConfig, VenusConfig};
use crate::counters::Counters;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::{Files, Handle};
use crate::identity::Identity;
use crate::kernel::KernelCaches;
use crate::key::{CellIndex, Key, NodeTarget};
use crate::leases::Leases;
use crate::leftover_locks::LeftoverLocks;
use crate::location::{Cell, CellFinder, Location};
use crate::lock_waits::LockWaits;
use crate::names::Names;
use crate::promises::{self, Promises};
use crate::residency::{PinBounds, Pins};
use crate::retry_orders::RetryOrders;
use crate::transfer::{OverPath, Rpc, Transfer};
use crate::venus::store_reason::StoreReason;
use crate::venus::{Shared, Venus, callbacks};
use crate::vnode::VnodeTable;

/// Limit of the paths that [`Venus::open_for_writing`] returns.
const PATHS_MAX: usize = 1000;

impl Venus {
    /// Starts the callback service and maintenance, finds the root, and returns the mount's cache manager.
    ///
    /// Fails if the root cannot be found: no location server replies, or it does not know the volume. Also if `config`
    /// has no cell, or the endpoint has a service of number 1 already.
    #[boxed]
    pub async fn start(config: VenusConfig) -> Result<Arc<Venus>> {
        let objects = config.objects.clone();
        Venus::start_with(config, |env, path, counters| {
            Arc::new(OverPath::new(Rpc, env, path, counters).reading(objects))
        })
        .await
    }

    /// The same with another route for file data.
    pub(super) async fn start_with(
        config: VenusConfig,
        transfer: impl FnOnce(EnvRef, DataPathConfig, Arc<Counters>) -> Arc<dyn Transfer>,
    ) -> Result<Arc<Venus>> {
        if config.cells.is_empty() || config.cells.iter().any(|cell| cell.location_servers.is_empty()) {
            return Err(VenusError::new(ErrorKind::Invalid, "start"));
        }
        let (venus, classes) = Venus::new(config, transfer);
        let service = callbacks::service(Arc::downgrade(&venus.shared));
        venus.calls.offer(service, classes)?;
        venus.restore_pins().await;
        venus.restore_offline().await;
        if let RootKind::Volume(name) = venus.names.root() {
            // What was pinned for that is found although no server replies.
            let starting = venus.without_waiting().reading();
            let key = starting.find_root(name).await?;
            venus.kernel.nodes().set_root(NodeTarget::Object(key));
            starting.status(&venus.vnode(key)).await?;
        }
        venus.env.spawn(Box::pin(Venus::maintain(Arc::downgrade(&venus.shared))));
        venus.env.spawn(Box::pin(Venus::restore_kept(Arc::downgrade(&venus.shared))));
        venus.env.spawn(Box::pin(Venus::watch_clocks(Arc::downgrade(&venus.shared))));
        venus.env.spawn(Box::pin(Venus::keep_pins(Arc::downgrade(&venus.shared))));
        Ok(Arc::new(venus))
    }

    fn new(
        config: VenusConfig,
        transfer: impl FnOnce(EnvRef, DataPathConfig, Arc<Counters>) -> Arc<dyn Transfer>,
    ) -> (Venus, Vec<Box<dyn ServerSecurity>>) {
        let VenusConfig { env, rx, cells, root, uuid, cache, sink, snapshots, sysnames, limits, .. } = config;
        let VenusConfig { security, data_path, resolver, .. } = config;
        let SecurityConfig { own, sessions, callback_classes } = security;
        let user = own.as_ref().map(|own| TokenOwner::Uid(own.uid));
        let cells = cells.iter().map(|cell| Cell::new(cell, &env, &rx, limits.server_dead)).collect();
        let counters: Arc<Counters> = Arc::default();
        let transfer = transfer(env.clone(), data_path, counters.clone());
        let identity = Arc::new(Identity::new(env.clone(), own, sessions));
        let location = Arc::new(Location::new(cells));
        let finder = CellFinder::new(env.clone(), rx.clone(), limits.server_dead, location.clone(), resolver);
        let kernel = Arc::new(KernelCaches::new(env.clone(), sink, counters.clone(), limits.settle_max));
        let vnodes = Arc::new(VnodeTable::new(limits.statuses_max));
        let bounds = PinBounds {
            objects: limits.statuses_max / 2,
            bytes: cache.bytes_max() / 2,
            directory_bytes: limits.directory_bytes_max / 2,
        };
        let pins = Arc::new(Pins::new(bounds));
        let parts = promises::Parts {
            env: env.clone(),
            counters: counters.clone(),
            identity: identity.clone(),
            location: location.clone(),
            kernel: kernel.clone(),
            vnodes: vnodes.clone(),
            pins: pins.clone(),
        };
        let promises = Arc::new(Promises::new(parts, &limits));
        let names = Names::new(root, sysnames, snapshots, vnodes.clone(), limits.directory_bytes_max);
        let files = Files::new(env.clone(), cache, location.names().clone(), vnodes.clone());
        let parts = calls::Parts {
            env: env.clone(),
            rx,
            identity: identity.clone(),
            location: location.clone(),
            counters: counters.clone(),
            promises: promises.clone(),
        };
        let windows = Arc::new(Windows::new(&limits.bypass, limits.chunk_bytes));
        let shared = Arc::new_cyclic(|me| Shared {
            calls: Calls::new(parts, &limits, when_returned(me)),
            limits,
            uuid,
            env,
            transfer,
            windows,
            location,
            cells: Arc::new(finder),
            vnodes,
            kernel,
            promises,
            names,
            rounds: Arc::default(),
            leases: Leases::default(),
            files,
            identity,
            counters,
            pins,
            retry_orders: RetryOrders::default(),
            leftover_locks: LeftoverLocks::new(),
            lock_waits: LockWaits::default(),
            signalled: OnceLock::new(),
            wake: Arc::default(),
        });
        (Venus { shared, context: CallContext::waiting(user) }, callback_classes)
    }

    async fn find_root(&self, name: &VolumeName) -> Result<Key> {
        let (base, suffix) = volname::split(name.as_str());
        let choice = suffix.map_or(Choice::ReadOnlyIfAny, Choice::Exactly);
        let volume = self.chosen_volume(CellIndex(0), base, choice, None).await?;
        Ok(Key::new(CellIndex(0), Fid::root(volume.id)))
    }

    /// Paths, from the root, of the files that are open for writing, sorted, without duplicates; at most 1000. Files
    /// without a name are left out.
    pub fn open_for_writing(&self) -> Vec<Vec<u8>> {
        let handles = self.files.handles();
        let held = |handle: &Arc<Handle>| self.kernel.nodes().held(NodeTarget::Object(handle.vnode.key));
        let nodes = handles.iter().filter(|handle| handle.may_change()).filter_map(held);
        let paths: BTreeSet<Vec<u8>> = nodes.filter_map(|node| self.kernel.nodes().path(node)).collect();
        paths.into_iter().take(PATHS_MAX).collect()
    }

    /// Stores dirty data, releases all locks and promises, makes the cache persistent, and ends the tasks.
    ///
    /// Files open for writing are stored in their present state and not kept in the cache: the kernel may write to the
    /// cache files of open descriptors as long as those exist, which is longer than this process. Takes at most twice
    /// [`crate::Limits::operation_max`] even if servers are unreachable. The error is that of the first store that
    /// failed, or of the cache; the other steps are done nevertheless. What was not stored stays in the cache for the next start.
    #[boxed]
    pub async fn shut_down(&self) -> Result<()> {
        self.without_waiting().shut_down_now().await
    }

    /// Does not wait for unreachable servers.
    async fn shut_down_now(&self) -> Result<()> {
        let until = self.now() + self.limits.operation_max;
        self.calls.close();
        let mut outcome = Ok(());
        let handles = self.files.handles();
        for handle in &handles {
            if handle.may_change() {
                handle.data().never_kept.store(true, Ordering::SeqCst);
            }
            let done = self.release(handle.id).await;
            outcome = outcome.and(done);
        }
        outcome = outcome.and(self.end_leases().await);
        for (key, user) in self.files.store_retries() {
            let data = self
                .vnodes
                .peek(key)
                .and_then(|vnode| vnode.state().file.data().cloned().map(|data| (vnode.clone(), data)));
            if let Some((vnode, data)) = data
                && self.now() < until
            {
                let done = self.as_user(user).retry_store(&vnode, &data, StoreReason::Retry).await;
                self.retire(&vnode, &data, user).await;
                if let Err(error) = &done {
                    self.files.note_failure(key, error);
                }
                self.keep_unsaved(&vnode, &data).await;
                outcome = outcome.and(done);
            }
        }
        self.wake.notify_waiters();
        self.release_all_locks(&handles).await;
        self.give_up_all(until + self.limits.server_dead).await;
        outcome.and(self.files.shut_down().await)
    }
}

/// The hook that is called when an unreachable server replies.
fn when_returned(venus: &Weak<Shared>) -> impl Fn() + Send + Sync + 'static {
    let venus = venus.clone();
    move || {
        if let Some(shared) = venus.upgrade() {
            Venus::anonymous(shared).catch_up_later();
        }
    }
}
