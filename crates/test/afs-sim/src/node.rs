//! Nodes of a simulation, with their incarnations.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Duration;

use crate::suspension::Suspension;

/// A host: it has addresses, an environment and disks, and it can crash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub(crate) u32);

/// One life of a node, from its start to its crash.
#[derive(Clone, Debug)]
pub(crate) struct Incarnation {
    pub(crate) node: NodeId,
    alive: Arc<AtomicBool>,
}

impl Incarnation {
    pub(crate) fn new(node: NodeId) -> Self {
        Self { node, alive: Arc::new(AtomicBool::new(true)) }
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.alive.store(false, Ordering::Relaxed);
    }
}

pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) life: Incarnation,
    /// Offset of the node's wall clock from the simulation's.
    pub(crate) wall_ahead: Duration,
    pub(crate) wall_behind: Duration,
    /// Whether the remains of the last incarnation have been removed.
    pub(crate) removed: bool,
    /// Its suspension, with what waits for its end.
    pub(crate) suspension: Suspension,
    /// Wakers for the end of this incarnation.
    pub(crate) watchers: Vec<Waker>,
}

impl Node {
    pub(crate) fn new(id: NodeId, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            life: Incarnation::new(id),
            wall_ahead: Duration::ZERO,
            wall_behind: Duration::ZERO,
            removed: false,
            suspension: Suspension::default(),
            watchers: Vec::new(),
        }
    }
}
