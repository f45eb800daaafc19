//! Where Venus tells the kernel's side that something it holds has become stale.

use std::future::Future;
use std::pin::Pin;

use crate::api::NodeId;

/// Receives what has become stale. Everything Venus hands out stays true until it is named here, so every cache
/// above it may keep things without limit of time.
///
/// The calls come from the handling of a callback, from maintenance, and from operations: they must return at once
/// and not call Venus back. A receiver that has slow work to do (the kernel may take a directory's lock) queues it
/// and lets [`InvalidationSink::settled`] tell when the queue has been worked off.
pub trait InvalidationSink: Send + Sync + 'static {
    /// The node's attributes are stale. Its data may be too: the next open says so by `keep_cache`.
    fn attributes(&self, node: NodeId);

    /// Pages or listing of the node are stale and must not be used any more, even by those that have it open.
    fn data(&self, node: NodeId);

    /// The name in this directory no longer leads where it did.
    fn entry(&self, parent: NodeId, name: &[u8]);

    /// Ready when everything said so far has taken effect. The answer to a server's callback waits for it, but
    /// not longer than [`crate::Limits::settle_max`], so that a receiver which waits for Venus cannot stop the cell.
    fn settled(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}

/// A sink for those who keep nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoSink;

impl InvalidationSink for NoSink {
    fn attributes(&self, _node: NodeId) {}
    fn data(&self, _node: NodeId) {}
    fn entry(&self, _parent: NodeId, _name: &[u8]) {}
}
