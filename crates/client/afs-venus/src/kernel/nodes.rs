//! Table of the nodes that the kernel holds, and the names under which each was handed out.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::api::NodeId;
use crate::kernel::Admitted;
use crate::key::{Map, NodeTarget};

/// Longest path that is built, in names.
const DEPTH_MAX: usize = 2048;
/// A directory, and a name in it.
type NameIn = (NodeId, Box<[u8]>);

/// Most names of one node that are known. An entry that the kernel has by a further one is invalidated when it goes.
const NAMES_MAX: usize = 256;

/// Every node with outstanding look-ups, and the root. Bounded by the number of inodes that the kernel holds; the
/// kernel reports when it drops one.
pub(crate) struct NodeTable(Mutex<Inner>);

struct Inner {
    by_id: Map<NodeId, NodeRecord>,
    /// Targets whose id is not the one computed from them, because another target has that id.
    displaced: Map<NodeTarget, NodeId>,
}

struct NodeRecord {
    node_target: NodeTarget,
    lookups: u64,
    /// Directory and name of each look-up that handed it out.
    names: Vec<(NodeId, Box<[u8]>)>,
    /// Of a directory: names handed out in it.
    children: BTreeMap<Box<[u8]>, NodeId>,
    /// Of a directory: users who may be in it.
    admitted: Admitted,
}

impl NodeRecord {
    fn new(node_target: NodeTarget) -> Self {
        let admitted = Admitted::default();
        NodeRecord { node_target, lookups: 0, names: Vec::new(), children: BTreeMap::new(), admitted }
    }

    /// The root, in which users begin without a request.
    fn root(node_target: NodeTarget) -> Self {
        NodeRecord { lookups: 1, admitted: Admitted::Anyone, ..NodeRecord::new(node_target) }
    }
}

impl NodeTable {
    /// A table with the root alone.
    pub fn new(root: NodeTarget) -> Self {
        let mut by_id = Map::default();
        by_id.insert(NodeId::ROOT, NodeRecord::root(root));
        let mut displaced = Map::default();
        displaced.insert(root, NodeId::ROOT);
        NodeTable(Mutex::new(Inner { by_id, displaced }))
    }

    /// Replaces the target of the root.
    pub fn set_root(&self, root: NodeTarget) {
        let mut inner = self.0.lock();
        inner.by_id.insert(NodeId::ROOT, NodeRecord::root(root));
        inner.displaced.insert(root, NodeId::ROOT);
    }

    /// The target of a node; `None` if the node is not held.
    pub fn node_target(&self, node: NodeId) -> Option<NodeTarget> {
        self.0.lock().by_id.get(&node).map(|record| record.node_target)
    }

    /// The node id of a target, held or not.
    pub fn id(&self, node_target: NodeTarget) -> NodeId {
        self.0.lock().id(node_target)
    }

    /// The node of a target, if it is held.
    pub fn held(&self, node_target: NodeTarget) -> Option<NodeId> {
        let inner = self.0.lock();
        let id = inner.id(node_target);
        inner.by_id.get(&id).is_some_and(|record| record.node_target == node_target).then_some(id)
    }

    /// Counts one look-up of a target by a name in a directory; `None` for a path walk, which hands out no name. With a name more than a node
    /// may have, returns the one that it loses, which is to be invalidated in the kernel.
    pub fn hand_out(
        &self,
        node_target: NodeTarget,
        name: Option<(NodeId, &[u8])>,
    ) -> (NodeId, Option<NameIn>) {
        let mut inner = self.0.lock();
        let id = inner.claim(node_target);
        let Some(record) = inner.by_id.get_mut(&id) else { return (id, None) };
        record.lookups += 1;
        if let Some((parent, name)) = name {
            // The last one is the name of the last look-up.
            let is_last = record.names.last().is_some_and(|(p, n)| *p == parent && **n == *name);
            if !is_last {
                record.names.retain(|(p, n)| *p != parent || **n != *name);
                record.names.push((parent, name.into()));
            }
            if let Some(parent) = inner.by_id.get_mut(&parent) {
                parent.children.insert(name.into(), id);
            }
        }
        (id, inner.drop_excess_name(id))
    }

    /// [`NodeTable::hand_out`] without a name too many.
    #[cfg(test)]
    pub fn remember(&self, node_target: NodeTarget, name: Option<(NodeId, &[u8])>) -> NodeId {
        self.hand_out(node_target, name).0
    }

    /// Subtracts look-ups. Returns the target of the node if none are left.
    pub fn forget(&self, node: NodeId, lookups: u64) -> Option<NodeTarget> {
        let mut inner = self.0.lock();
        let record = inner.by_id.get_mut(&node)?;
        record.lookups = record.lookups.saturating_sub(lookups);
        if record.lookups > 0 || node == NodeId::ROOT {
            return None;
        }
        let record = inner.by_id.remove(&node)?;
        inner.displaced.remove(&record.node_target);
        for (parent, name) in &record.names {
            inner.drop_name(*parent, name, node);
        }
        Some(record.node_target)
    }

    /// Number of outstanding look-ups of a node.
    pub fn lookups(&self, node: NodeId) -> u64 {
        self.0.lock().by_id.get(&node).map_or(0, |record| record.lookups)
    }

    /// Names that were handed out in a directory.
    pub fn names_in(&self, dir: NodeId) -> Vec<Box<[u8]>> {
        self.0
            .lock()
            .by_id
            .get(&dir)
            .map(|record| record.children.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// Names under which a node was handed out, each with its directory.
    pub fn names_of(&self, node: NodeId) -> Vec<(NodeId, Box<[u8]>)> {
        self.0.lock().by_id.get(&node).map(|record| record.names.clone()).unwrap_or_default()
    }

    /// The node of a name that was handed out in a directory.
    pub fn child_node(&self, dir: NodeId, name: &[u8]) -> Option<NodeId> {
        self.0.lock().by_id.get(&dir)?.children.get(name).copied()
    }

    /// The users who may be in a directory.
    pub fn admitted(&self, dir: NodeId) -> Admitted {
        self.0.lock().by_id.get(&dir).map(|record| record.admitted.clone()).unwrap_or_default()
    }

    /// Adds users to those who may be in a directory. Returns true if some are new, and others were there before.
    pub fn add_admitted(&self, dir: NodeId, users: &Admitted) -> bool {
        let mut inner = self.0.lock();
        let Some(record) = inner.by_id.get_mut(&dir) else { return false };
        let was_empty = record.admitted == Admitted::default();
        record.admitted.add(users) && !was_empty
    }

    /// The target of a name that was handed out in a directory.
    pub fn child(&self, dir: NodeId, name: &[u8]) -> Option<NodeTarget> {
        let inner = self.0.lock();
        let child = inner.by_id.get(&dir)?.children.get(name)?;
        inner.by_id.get(child).map(|record| record.node_target)
    }

    /// The name by which a node was looked up last, of those that still refer to it as far as is known here.
    pub fn name(&self, node: NodeId) -> Option<Box<[u8]>> {
        let inner = self.0.lock();
        let leads_here = |(dir, name): &&(NodeId, Box<[u8]>)| {
            inner.by_id.get(dir).is_some_and(|dir| dir.children.get(name) == Some(&node))
        };
        let record = inner.by_id.get(&node)?;
        record.names.iter().rev().find(leads_here).map(|(_, name)| name.clone())
    }

    /// A path from the root under which a node was looked up; `None` if no name is known any more.
    pub fn path(&self, node: NodeId) -> Option<Vec<u8>> {
        let inner = self.0.lock();
        let mut names: Vec<&[u8]> = Vec::new();
        let mut at = node;
        while at != NodeId::ROOT {
            let (parent, name) = inner.by_id.get(&at)?.names.last()?;
            names.push(name);
            at = *parent;
            // A directory that was moved below itself would make this loop endless.
            if names.len() > DEPTH_MAX {
                return None;
            }
        }
        names.reverse();
        Some(names.join(&b'/'))
    }

    /// Removes a name of a directory that is gone or refers to another object.
    pub fn drop_name(&self, dir: NodeId, name: &[u8]) {
        if let Some(record) = self.0.lock().by_id.get_mut(&dir) {
            record.children.remove(name);
        }
    }

    /// Moves a name that was handed out to another directory or name. `node` is the object if the old name is not in
    /// the table.
    pub fn rename(&self, from: (NodeId, &[u8]), to: (NodeId, &[u8]), node: NodeId) {
        let mut inner = self.0.lock();
        let held = inner.by_id.get_mut(&from.0).and_then(|dir| dir.children.remove(from.1));
        let node = held.unwrap_or(node);
        let Some(record) = inner.by_id.get_mut(&node) else { return };
        record.names.retain(|(dir, name)| (*dir, &**name) != (from.0, from.1));
        record.names.push((to.0, to.1.into()));
        if let Some(dir) = inner.by_id.get_mut(&to.0) {
            dir.children.insert(to.1.into(), node);
        }
    }

    /// Number of nodes held.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.0.lock().by_id.len()
    }
}

impl Inner {
    fn id(&self, node_target: NodeTarget) -> NodeId {
        match self.displaced.get(&node_target) {
            Some(&id) => id,
            None => node_target.node_id(),
        }
    }

    /// Assigns an id to a target: its computed id, or the next free one if another target has that.
    fn claim(&mut self, node_target: NodeTarget) -> NodeId {
        let own = self.id(node_target);
        let mut id = own;
        while self.by_id.get(&id).is_some_and(|record| record.node_target != node_target) {
            id = NodeId(((id.0 + 1) & (u64::MAX >> 1)).max(2));
        }
        if id != own {
            self.displaced.insert(node_target, id);
        }
        self.by_id.entry(id).or_insert_with(|| NodeRecord::new(node_target));
        id
    }

    /// Drops a name of a node that has too many: the oldest of those that do not lead to it any more, or else the oldest, which is returned.
    fn drop_excess_name(&mut self, id: NodeId) -> Option<NameIn> {
        let names = &self.by_id.get(&id).filter(|record| record.names.len() > NAMES_MAX)?.names;
        let leads_here =
            |(dir, name): &NameIn| self.by_id.get(dir).is_some_and(|dir| dir.children.get(name) == Some(&id));
        let stale = names.iter().position(|name| !leads_here(name));
        let (dir, name) = self.by_id.get_mut(&id)?.names.remove(stale.unwrap_or(0));
        self.drop_name(dir, &name, id);
        stale.is_none().then_some((dir, name))
    }

    fn drop_name(&mut self, parent: NodeId, name: &[u8], child: NodeId) {
        if let Some(parent) = self.by_id.get_mut(&parent)
            && parent.children.get(name) == Some(&child)
        {
            parent.children.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};

    use super::*;
    use crate::key::{CellIndex, Key};

    fn node_target(vnode: u32) -> NodeTarget {
        NodeTarget::Object(Key::new(CellIndex(0), Fid::new(VolumeId(7), VnodeId(vnode), Uniquifier(1))))
    }

    #[test]
    fn a_node_is_held_until_all_lookups_are_forgotten() {
        let nodes = NodeTable::new(node_target(1));
        let id = nodes.remember(node_target(2), Some((NodeId::ROOT, b"a")));
        assert_eq!(nodes.remember(node_target(2), Some((NodeId::ROOT, b"a"))), id);
        assert_eq!((nodes.node_target(id), nodes.lookups(id)), (Some(node_target(2)), 2));
        assert_eq!(nodes.names_in(NodeId::ROOT), [Box::from(*b"a")]);
        assert_eq!(nodes.child(NodeId::ROOT, b"a"), Some(node_target(2)));
        assert_eq!(nodes.child(NodeId::ROOT, b"b"), None);
        assert_eq!(nodes.forget(id, 1), None);
        assert_eq!(nodes.held(node_target(2)), Some(id));
        assert_eq!(nodes.forget(id, 1), Some(node_target(2)));
        assert_eq!((nodes.node_target(id), nodes.lookups(id)), (None, 0));
        assert!(nodes.names_in(NodeId::ROOT).is_empty());
        assert_eq!(nodes.count(), 1);
    }

    #[test]
    fn the_name_of_a_node_is_the_last_one_that_still_leads_to_it() {
        let nodes = NodeTable::new(node_target(1));
        let name = |id| nodes.name(id).map(|name| String::from_utf8(name.into()).unwrap());
        let id = nodes.remember(node_target(2), Some((NodeId::ROOT, b"a")));
        nodes.remember(node_target(2), Some((NodeId::ROOT, b"b")));
        assert_eq!(name(id).as_deref(), Some("b"));
        nodes.remember(node_target(2), Some((NodeId::ROOT, b"a")));
        nodes.remember(node_target(2), None);
        assert_eq!(name(id).as_deref(), Some("a"));
        nodes.rename((NodeId::ROOT, b"a"), (NodeId::ROOT, b"c"), id);
        assert_eq!(name(id).as_deref(), Some("c"));
        nodes.remember(node_target(3), Some((NodeId::ROOT, b"c")));
        assert_eq!(name(id).as_deref(), Some("b"));
        nodes.drop_name(NodeId::ROOT, b"b");
        assert_eq!(name(id), None);
    }

    #[test]
    fn names_of_a_node_are_bounded_and_the_oldest_is_to_be_invalidated() {
        let nodes = NodeTable::new(node_target(1));
        let hand_out =
            |n: usize| nodes.hand_out(node_target(2), Some((NodeId::ROOT, n.to_string().as_bytes())));
        let id = hand_out(0).0;
        assert!((1..NAMES_MAX).all(|n| hand_out(n).1.is_none()));
        assert_eq!(hand_out(NAMES_MAX).1, Some((NodeId::ROOT, (*b"0").into())));
        assert_eq!((nodes.names_of(id).len(), nodes.names_in(NodeId::ROOT).len()), (NAMES_MAX, NAMES_MAX));
        nodes.drop_name(NodeId::ROOT, b"7");
        assert_eq!(hand_out(NAMES_MAX + 1).1, None, "a removed name gives way first");
        nodes.forget(id, u64::MAX);
        assert!(nodes.names_in(NodeId::ROOT).is_empty());
    }

    #[test]
    fn names_that_are_made_and_removed_do_not_add_up() {
        let nodes = NodeTable::new(node_target(1));
        let id = nodes.remember(node_target(2), Some((NodeId::ROOT, b"file")));
        for n in 0..10 * NAMES_MAX {
            let name = n.to_string();
            assert_eq!(nodes.hand_out(node_target(2), Some((NodeId::ROOT, name.as_bytes()))).1, None);
            nodes.drop_name(NodeId::ROOT, name.as_bytes());
        }
        assert_eq!(nodes.names_of(id).len(), NAMES_MAX);
        assert_eq!(nodes.names_in(NodeId::ROOT), [Box::from(*b"file")]);
    }

    #[test]
    fn the_root_stays() {
        let nodes = NodeTable::new(node_target(1));
        assert_eq!(nodes.forget(NodeId::ROOT, 99), None);
        assert_eq!(nodes.node_target(NodeId::ROOT), Some(node_target(1)));
        assert_eq!(nodes.id(node_target(1)), NodeId::ROOT);
    }

    #[test]
    fn two_targets_never_share_an_id() {
        let nodes = NodeTable::new(node_target(1));
        let id = nodes.remember(node_target(2), None);
        // The next target is made to compute the same id.
        nodes.0.lock().displaced.insert(node_target(4), id);
        let other = nodes.remember(node_target(4), None);
        assert_ne!(other, id);
        assert_eq!(nodes.node_target(other), Some(node_target(4)));
        assert_eq!(nodes.id(node_target(4)), other);
    }
}
