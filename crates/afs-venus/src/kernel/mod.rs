//! Above: what those above us hold, and how they hear that something of it is stale.
//!
//! Knows nodes and places, and nothing of promises: what is stale is decided elsewhere.

mod nodes;

pub(crate) use nodes::NodeTable;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use afs_rpc::{EnvExt, EnvRef};

use crate::api::NodeId;
use crate::key::{Key, NodeTarget};
use crate::sink::InvalidationSink;

/// The nodes that were handed out, and the sink.
pub(crate) struct KernelCaches {
    env: EnvRef,
    nodes: NodeTable,
    sink: Arc<dyn InvalidationSink>,
    /// How often something was told to the sink, or would have been if it held it.
    count: AtomicU64,
    /// How long to wait until the sink has forgotten.
    settle_max: Duration,
}

impl KernelCaches {
    /// Nothing is held but the root, which is the directory of all cells.
    pub fn new(env: EnvRef, sink: Arc<dyn InvalidationSink>, settle_max: Duration) -> Self {
        KernelCaches {
            env,
            nodes: NodeTable::new(NodeTarget::Cells),
            sink,
            count: AtomicU64::new(0),
            settle_max,
        }
    }

    /// The nodes that were handed out.
    pub fn nodes(&self) -> &NodeTable {
        &self.nodes
    }

    /// How many invalidations there have been, whether or not the kernel held what they are about.
    pub fn invalidations(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// What is held of an object may be stale, and of a directory the names that were handed out in it.
    pub fn invalidate(&self, key: Key) {
        let Some(node) = self.invalidate_attributes(key) else { return };
        if key.fid.is_directory() {
            for name in self.nodes.names_in(node) {
                self.sink.entry(node, &name);
            }
        }
    }

    /// The attributes of an object may be stale, and no name. Gives its node if it is held.
    pub fn invalidate_attributes(&self, key: Key) -> Option<NodeId> {
        self.note_unpromised();
        let node = self.nodes.held(NodeTarget::Object(key))?;
        self.sink.attributes(node);
        Some(node)
    }

    /// Pages or listing of an object must not be used any more. Says whether it is held.
    pub fn invalidate_data(&self, key: Key) -> bool {
        self.note_unpromised();
        let node = self.nodes.held(NodeTarget::Object(key));
        node.into_iter().for_each(|node| self.sink.data(node));
        node.is_some()
    }

    /// A name was handed out that leads elsewhere, or nowhere.
    pub fn invalidate_entry(&self, parent: NodeId, name: &[u8]) {
        self.note_unpromised();
        self.sink.entry(parent, name);
    }

    /// A name that is seen as a directory above is gone.
    pub fn invalidate_removed(&self, parent: NodeId, name: &[u8]) {
        self.note_unpromised();
        self.sink.attributes(parent);
        self.sink.entry(parent, name);
    }

    /// An answer is given that no server promised. By the time it is handed on, another task may have got a promise, which is
    /// one for something newer.
    pub fn note_unpromised(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits until the sink has forgotten all that it was told. Not for ever: it may be waiting for an operation of ours that
    /// the very server which calls us is holding up.
    pub async fn settled(&self) {
        if self.env.timeout(self.settle_max, self.sink.settled()).await.is_err() {
            tracing::debug!("the kernel has not yet forgotten what a callback broke");
        }
    }
}

#[cfg(test)]
mod tests;
