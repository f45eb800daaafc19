//! Lengths that the kernel may lack: nodes of which it was notified since it surely had their attributes.
//!
//! The kernel keeps the length that it had if it is notified of an inode between its request for attributes and the
//! reply: it drops the reply. Reads from its pages end at that length, so that a version opened meanwhile is read cut,
//! or with zeros behind its end. The kernel surely has a length if it was not notified since the inode was made, or if
//! the request for the attributes was made after all notifications: as that of a thread whose open was answered with
//! ESTALE after them, and which therefore looks the name up once more.

use afs_venus::NodeId;
use std::collections::HashMap;

use parking_lot::Mutex;

/// Notifications of one mount. Bounded by the nodes that the kernel holds.
#[derive(Default)]
pub(crate) struct Lengths(Mutex<Table>);

/// A point in the order of notifications. The default is before the first one.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Moment(u64);

#[derive(Default)]
struct Table {
    now: Moment,
    notified: HashMap<NodeId, Notified>,
}

#[derive(Default)]
struct Notified {
    /// Notifications that are being written.
    in_progress: u32,
    /// When the last one had been written.
    last: Moment,
}

impl Lengths {
    pub(crate) fn now(&self) -> Moment {
        self.0.lock().now
    }

    /// Writes a notification about a node to the kernel, of which that `holds` the node afterwards.
    pub(crate) fn notify<T>(
        &self,
        node: NodeId,
        write: impl FnOnce() -> T,
        holds: impl FnOnce() -> bool,
    ) -> T {
        self.0.lock().notified.entry(node).or_default().in_progress += 1;
        let written = write();
        let holds = holds();
        self.0.lock().written(node, holds);
        written
    }

    /// Whether no notification about a node may have followed a moment.
    pub(crate) fn is_quiet_since(&self, node: NodeId, moment: Moment) -> bool {
        let table = self.0.lock();
        table.notified.get(&node).is_none_or(|notified| notified.in_progress == 0 && notified.last <= moment)
    }

    /// The kernel surely has the attributes of a node that it requested after a moment, unless it was notified since.
    pub(crate) fn arrived(&self, node: NodeId, moment: Moment) {
        let mut table = self.0.lock();
        if table.notified.get(&node).is_some_and(|of| of.in_progress == 0 && of.last <= moment) {
            table.notified.remove(&node);
        }
    }

    /// The kernel has returned all look-ups of a node: it makes the inode anew.
    pub(crate) fn evicted(&self, node: NodeId) {
        self.0.lock().notified.remove(&node);
    }
}

impl Table {
    fn written(&mut self, node: NodeId, holds: bool) {
        self.now.0 += 1;
        if !holds {
            self.notified.remove(&node);
        }
        let Some(notified) = self.notified.get_mut(&node) else { return };
        notified.in_progress = notified.in_progress.saturating_sub(1);
        notified.last = self.now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(7);

    #[test]
    fn attributes_arrive_that_were_requested_after_the_last_notification() {
        let lengths = Lengths::default();
        assert!(lengths.is_quiet_since(NODE, Moment::default()));
        let before = lengths.now();
        lengths.notify(NODE, || assert!(!lengths.is_quiet_since(NODE, lengths.now())), || true);
        let after = lengths.now();
        assert!(!lengths.is_quiet_since(NODE, before) && lengths.is_quiet_since(NODE, after));
        lengths.arrived(NODE, before);
        assert!(!lengths.is_quiet_since(NODE, before), "it may have been dropped");
        lengths.arrived(NODE, after);
        assert!(lengths.is_quiet_since(NODE, before));
    }

    #[test]
    fn nodes_that_the_kernel_does_not_hold_take_no_memory() {
        let lengths = Lengths::default();
        lengths.notify(NODE, || (), || false);
        lengths.notify(NODE, || lengths.evicted(NODE), || true);
        lengths.notify(NODE, || (), || true);
        lengths.evicted(NODE);
        assert!(lengths.0.lock().notified.is_empty());
    }
}
