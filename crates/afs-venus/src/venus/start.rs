//! Start and end.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afs_rpc::ServerSecurity;
use afs_rpc::sync::Notify;
use afs_wire::ids::{Fid, VolumeName};
use afs_wire::mountpoint::Choice;
use afs_wire::volname;

use crate::api::TokenOwner;
use crate::config::{RootKind, SecurityConfig, VenusConfig};
use crate::counters::Counters;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::{CellIndex, Key, Place};
use crate::location::{Cell, ServerTable, VolumeTable};
use crate::nodes::NodeTable;
use crate::tokens::TokenTable;
use crate::venus::handles::{Handle, HandleTable};
use crate::venus::occasion::Occasion;
use crate::venus::reask::Orders;
use crate::venus::{GiveUp, Shared, Venus, callbacks};
use crate::vnode::{Breaks, VnodeTable};

/// Most paths that [`Venus::open_for_writing`] gives.
const OPEN_TOLD_MAX: usize = 1000;

impl Venus {
    /// Starts the callback service and maintenance, finds the root, and gives the mount's cache manager.
    ///
    /// Fails when the root cannot be reached: no location server answers, or it does not know the volume. Also when
    /// `config` has no cell, or the endpoint has a service of number 1 already.
    pub async fn start(config: VenusConfig) -> Result<Arc<Venus>> {
        if config.cells.is_empty() || config.cells.iter().any(|cell| cell.location_servers.is_empty()) {
            return Err(VenusError::new(ErrorKind::Invalid, "start"));
        }
        let (venus, classes) = Venus::new(config);
        let service = callbacks::service(Arc::downgrade(&venus.shared));
        let offered = match classes.is_empty() {
            true => venus.rx.listen(service),
            false => venus.rx.listen_with(service, classes),
        };
        offered.map_err(|error| {
            tracing::error!(%error, "the callback service cannot be offered");
            VenusError::new(ErrorKind::Invalid, "start")
        })?;
        if let RootKind::Volume(name) = &venus.root {
            let key = venus.find_root(name).await?;
            venus.nodes.set_root(Place::Object(key));
            venus.status(&venus.vnode(key)).await?;
        }
        venus.env.spawn(Box::pin(Venus::maintain(Arc::downgrade(&venus.shared))));
        venus.env.spawn(Box::pin(Venus::watch_clocks(Arc::downgrade(&venus.shared))));
        Ok(Arc::new(venus))
    }

    fn new(config: VenusConfig) -> (Venus, Vec<Box<dyn ServerSecurity>>) {
        let VenusConfig { env, rx, cells, root, uuid, cache, sink, snapshots, sysnames, limits, security } =
            config;
        let SecurityConfig { own, sessions, callback_classes } = security;
        let who = own.as_ref().map(|own| TokenOwner::Uid(own.uid));
        let cells = cells.iter().map(|cell| Cell::new(cell, &env, &rx, limits.server_dead)).collect();
        let shared = Shared {
            vnodes: VnodeTable::new(limits.statuses_max),
            env,
            rx,
            limits,
            uuid,
            sysnames,
            snapshots,
            root,
            sink,
            cache,
            cells,
            servers: ServerTable::default(),
            volumes: VolumeTable::default(),
            nodes: NodeTable::new(Place::Cells),
            handles: HandleTable::default(),
            tokens: TokenTable::new(own.map(|own| (own.uid, own.security))),
            sessions,
            orders: Orders::default(),
            breaks: Breaks::default(),
            told: AtomicU64::new(0),
            token_changes: AtomicU64::new(0),
            counters: Counters::default(),
            directory_bytes: AtomicU64::new(0),
            unsaved: Mutex::default(),
            give_up: Mutex::new(GiveUp::default()),
            closing: AtomicBool::new(false),
            wake: Notify::new(),
            awake_at: AtomicU64::new(0),
        };
        (Venus { shared: Arc::new(shared), who }, callback_classes)
    }

    async fn find_root(&self, name: &VolumeName) -> Result<Key> {
        let (base, suffix) = volname::split(name.as_str());
        let choice = suffix.map_or(Choice::ReadOnlyIfAny, Choice::Exactly);
        let volume = self.chosen_volume(CellIndex(0), base, choice, None).await?;
        Ok(Key::new(CellIndex(0), Fid::root(volume.id)))
    }

    /// The paths, from the root, of the files that are open for writing, in order, each once; at most 1000. A file that
    /// has lost its name is not among them.
    pub fn open_for_writing(&self) -> Vec<Vec<u8>> {
        let handles = self.handles.all();
        let held = |handle: &Arc<Handle>| self.nodes.held(Place::Object(handle.vnode.key));
        let nodes = handles.iter().filter(|handle| handle.may_change()).filter_map(held);
        let paths: BTreeSet<Vec<u8>> = nodes.filter_map(|node| self.nodes.path(node)).collect();
        paths.into_iter().take(OPEN_TOLD_MAX).collect()
    }

    /// Stores what is unsaved, gives all promises back, makes the cache outlive the process, ends the tasks.
    ///
    /// What is open for writing is stored as it is now and not kept in the cache: the kernel may write to the cache files of
    /// open descriptors as long as those live, which is longer than this process.
    /// Takes no longer than twice [`crate::Limits::operation_max`] even when servers are away. An error is that of the
    /// first store that failed, or of the cache; the rest is done all the same.
    pub async fn shut_down(&self) -> Result<()> {
        let until = self.now() + self.limits.operation_max;
        self.closing.store(true, Ordering::SeqCst);
        let mut outcome = Ok(());
        for handle in self.handles.all() {
            if handle.may_change() {
                handle.data().outlives_us.store(true, Ordering::SeqCst);
            }
            let done = self.release(handle.id).await;
            outcome = outcome.and(done);
        }
        for (key, who) in self.unsaved_files() {
            let data = self
                .vnodes
                .peek(key)
                .and_then(|vnode| vnode.state().data.clone().map(|data| (vnode.clone(), data)));
            if let Some((vnode, data)) = data
                && self.now() < until
            {
                let done = self.speaking_for(who).store_again(&vnode, &data, Occasion::Again).await;
                self.put_away(&vnode, &data).await;
                outcome = outcome.and(done);
            }
        }
        self.wake.notify_all();
        self.give_up_all(until + self.limits.server_dead).await;
        let cache = self.cache.clone();
        outcome.and(self.disk(move || cache.shut_down()).await)
    }
}
