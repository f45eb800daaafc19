//! Interface through which Venus invalidates what its caller has cached.

use std::future::Future;
use std::pin::Pin;

use crate::api::NodeId;

/// Receives invalidations. Everything that Venus hands out stays valid until it is invalidated here, so a cache of the
/// caller may keep it without a time limit.
///
/// The methods are called by the callback service, maintenance and operations: they must return at once and must not
/// call Venus. A receiver with slow work (the kernel may lock a directory) queues it, and reports with
/// [`InvalidationSink::settled`] when the queue is empty.
pub trait InvalidationSink: Send + Sync + 'static {
    /// The node's attributes are stale. Its data may be too: `keep_cache` of the next open tells.
    fn attributes(&self, node: NodeId);

    /// The node's pages or listing are stale and must not be used any more, even through open handles.
    fn data(&self, node: NodeId);

    /// The name in this directory refers to another object, or to none.
    fn entry(&self, parent: NodeId, name: &[u8]);

    /// Every name is to be looked up again, from the return of this method on. Called only where several users share what
    /// the receiver keeps ([`crate::Venus::admit`]); one that cannot do this keeps nothing that is not public.
    fn all_names(&self) {}

    /// Ready when all invalidations so far have taken effect. The reply to a callback waits for it, but at most
    /// [`crate::Limits::settle_max`], so that a receiver with an error cannot block the cell. It must not wait for an
    /// operation of Venus: a call of that may itself wait for the reply. A wait that the limit ends is counted.
    fn settled(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}

/// A sink for callers that cache nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoSink;

impl InvalidationSink for NoSink {
    fn attributes(&self, _node: NodeId) {}
    fn data(&self, _node: NodeId) {}
    fn entry(&self, _parent: NodeId, _name: &[u8]) {}
}
