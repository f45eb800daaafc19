//! Kernel caches: the nodes that the kernel holds, and the invalidations sent to it when an object is stale.
//!
//! This module decides nothing: [`crate::promises`] determines what is stale.

mod admitted;
mod nodes;

pub(crate) use admitted::Admitted;
pub(crate) use nodes::NodeTable;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use afs_rpc::{EnvExt, EnvRef};

use crate::api::NodeId;
use crate::counters::{Counters, count};
use crate::key::{Key, NodeTarget};
use crate::sink::InvalidationSink;

/// Table of the nodes that were handed out, and the sink of invalidations.
pub(crate) struct KernelCaches {
    env: EnvRef,
    nodes: NodeTable,
    sink: Arc<dyn InvalidationSink>,
    counters: Arc<Counters>,
    /// Number of invalidations, including those of objects that the sink does not hold.
    count: AtomicU64,
    /// Time limit of [`KernelCaches::settled`].
    settle_max: Duration,
}

impl KernelCaches {
    /// A table with the root alone, which is the directory of all cells.
    pub fn new(
        env: EnvRef,
        sink: Arc<dyn InvalidationSink>,
        counters: Arc<Counters>,
        settle_max: Duration,
    ) -> Self {
        KernelCaches {
            env,
            nodes: NodeTable::new(NodeTarget::Cells),
            sink,
            counters,
            count: AtomicU64::new(0),
            settle_max,
        }
    }

    /// The nodes that were handed out.
    pub fn nodes(&self) -> &NodeTable {
        &self.nodes
    }

    /// Number of invalidations so far, whether or not the kernel held the object.
    pub fn invalidations(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Invalidates the attributes of an object, and for a directory the names that were handed out in it.
    pub fn invalidate(&self, key: Key) {
        let Some(node) = self.invalidate_attributes(key) else { return };
        if key.fid.is_directory() {
            for name in self.nodes.names_in(node) {
                self.sink.entry(node, &name);
            }
        }
    }

    /// Invalidates the names under which an object was handed out, so that they are looked up again.
    pub fn invalidate_names_of(&self, key: Key) {
        self.note_unpromised();
        let node = self.nodes.held(NodeTarget::Object(key));
        let names = node.map(|node| self.nodes.names_of(node)).unwrap_or_default();
        names.iter().for_each(|(parent, name)| self.sink.entry(*parent, name));
    }

    /// Invalidates the attributes of an object, but no names. Returns its node if the kernel holds it.
    pub fn invalidate_attributes(&self, key: Key) -> Option<NodeId> {
        self.note_unpromised();
        let node = self.nodes.held(NodeTarget::Object(key))?;
        self.sink.attributes(node);
        Some(node)
    }

    /// Invalidates the pages or the listing of an object. Returns true if the kernel holds the object.
    pub fn invalidate_data(&self, key: Key) -> bool {
        self.note_unpromised();
        let node = self.nodes.held(NodeTarget::Object(key));
        node.into_iter().for_each(|node| self.sink.data(node));
        node.is_some()
    }

    /// Invalidates a name that was handed out and now refers to another object, or to none.
    pub fn invalidate_entry(&self, parent: NodeId, name: &[u8]) {
        self.note_unpromised();
        self.sink.entry(parent, name);
    }

    /// Invalidates the name of a removed mount point and the attributes of its directory: the kernel sees a directory
    /// there.
    pub fn invalidate_removed(&self, parent: NodeId, name: &[u8]) {
        self.note_unpromised();
        self.sink.attributes(parent);
        self.sink.entry(parent, name);
    }

    /// Makes the kernel look up every name again.
    pub fn invalidate_all_names(&self) {
        self.note_unpromised();
        self.sink.all_names();
    }

    /// Counts a reply that no server promised. Before the caller passes it on, another task may have obtained a
    /// promise, but for a newer state.
    pub fn note_unpromised(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits until the sink has applied all invalidations. The time limit protects the cell from a sink with an error:
    /// a sink must not wait for an operation, which the calling server itself may block. A wait that it ends is counted.
    pub async fn settled(&self) {
        if self.env.timeout(self.settle_max, self.sink.settled()).await.is_err() {
            count(&self.counters.kernel_waits_cut);
            tracing::info!("the kernel has not yet forgotten what a callback broke");
        }
    }
}

#[cfg(test)]
mod tests;
