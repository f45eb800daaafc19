//! Inode numbers as the kernel knows them.
//!
//! Usually the number of an inode is Venus' node id. Two kinds of number are our own and have bit 63 set:
//!
//! * an **alias** stands for a node that has another number as well. The kernel has one set of pages and one backing
//!   file per inode at a time; when an open file still uses an older version of the data, a new open of the
//!   newer version gets an inode of its own. Programs see the number of the node in any case (`st_ino`). An alias stays
//!   the number of new look-ups for as long as another inode of the node is open, also while the kernel holds no look-up
//!   of it: after ESTALE the kernel looks up, gives that look-up back, and looks up once more.
//! * a **placeholder** stands in a listing for something not asked about (a mount point not yet
//!   crossed). Any use of it answers ESTALE, which makes the kernel look the name up.

use afs_venus::NodeId;
use fuser::INodeNo;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

const RESERVED: u64 = 1 << 63;
const ALIAS: u64 = 1 << 62;

/// The table of aliases. Nearly always empty, and then no lock is taken.
#[derive(Default)]
pub(crate) struct Inodes {
    any: AtomicBool,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next: u64,
    /// Alias to its node and the look-ups the kernel holds of it.
    aliases: BTreeMap<u64, (NodeId, u64)>,
    /// The alias that new look-ups of a node get.
    current: BTreeMap<NodeId, u64>,
    /// Nodes under whose own number the kernel may hold pages of another version than those that were opened last.
    doubtful: BTreeSet<NodeId>,
}

impl Table {
    fn has_alias(&self, node: NodeId) -> bool {
        self.aliases.values().any(|(n, _)| *n == node)
    }

    fn is_empty(&self) -> bool {
        self.aliases.is_empty() && self.doubtful.is_empty()
    }

    /// Whether another number of a node than this is open.
    fn is_rivalled(&self, node: NodeId, ino: u64, is_open: impl Fn(INodeNo) -> bool) -> bool {
        let of_node = self.aliases.iter().filter(|(_, (n, _))| *n == node).map(|(alias, _)| *alias);
        of_node.chain([node.0]).any(|other| other != ino && is_open(INodeNo(other)))
    }
}

impl Inodes {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    /// The node behind a number, or `None` for a placeholder.
    pub(crate) fn node(&self, ino: INodeNo) -> Option<NodeId> {
        if ino.0 & RESERVED == 0 {
            return Some(NodeId(ino.0));
        }
        self.table().aliases.get(&ino.0).map(|(node, _)| *node)
    }

    /// The number to hand out for a node, counted as one look-up.
    pub(crate) fn hand_out(&self, node: NodeId) -> INodeNo {
        if !self.any.load(Ordering::Acquire) {
            return INodeNo(node.0);
        }
        let mut table = self.table();
        let Some(alias) = table.current.get(&node).copied() else { return INodeNo(node.0) };
        if let Some((_, lookups)) = table.aliases.get_mut(&alias) {
            *lookups += 1;
        }
        INodeNo(alias)
    }

    /// The number that new look-ups of a node get.
    pub(crate) fn current(&self, node: NodeId) -> INodeNo {
        INodeNo(self.table().current.get(&node).copied().unwrap_or(node.0))
    }

    /// From now on, look-ups of this node get a new number.
    pub(crate) fn renumber(&self, node: NodeId) {
        let mut table = self.table();
        table.next += 1;
        let alias = RESERVED | ALIAS | table.next;
        let replaced = table.current.insert(node, alias);
        table.aliases.insert(alias, (node, 0));
        table.doubtful.insert(node);
        // An alias that nobody looked up yet can go; others go when the kernel forgets them.
        if let Some(old) = replaced.filter(|old| table.aliases.get(old).is_some_and(|(_, n)| *n == 0)) {
            table.aliases.remove(&old);
        }
        self.any.store(true, Ordering::Release);
    }

    /// The kernel forgets `lookups` look-ups of a number: the node they are to be given back for.
    pub(crate) fn forget(
        &self,
        ino: INodeNo,
        lookups: u64,
        is_open: impl Fn(INodeNo) -> bool,
    ) -> Option<NodeId> {
        if ino.0 & RESERVED == 0 {
            return Some(NodeId(ino.0));
        }
        let mut table = self.table();
        let (node, held) = table.aliases.get_mut(&ino.0)?;
        let node = *node;
        *held = held.saturating_sub(lookups);
        if *held == 0 {
            self.drop_unused(&mut table, node, ino.0, is_open);
        }
        Some(node)
    }

    /// An inode of a node was closed: an alias that was kept only because of it goes.
    pub(crate) fn settle(&self, node: NodeId, is_open: impl Fn(INodeNo) -> bool) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut table = self.table();
        let Some(alias) = table.current.get(&node).copied() else { return };
        if table.aliases.get(&alias).is_none_or(|(_, held)| *held == 0) {
            self.drop_unused(&mut table, node, alias, is_open);
        }
    }

    /// Drops an alias of which the kernel holds no look-up, unless it keeps new opens apart from older ones.
    fn drop_unused(&self, table: &mut Table, node: NodeId, alias: u64, is_open: impl Fn(INodeNo) -> bool) {
        let is_current = table.current.get(&node) == Some(&alias);
        if is_current && table.is_rivalled(node, alias, is_open) {
            return;
        }
        table.aliases.remove(&alias);
        if is_current {
            table.current.remove(&node);
        }
        self.any.store(!table.is_empty(), Ordering::Release);
    }

    /// Whether the pages that the kernel holds under a number of a node, which is opened now, are of the version that was
    /// opened last under any number. The answer no makes the kernel drop them.
    pub(crate) fn has_latest_pages(&self, ino: INodeNo, node: NodeId) -> bool {
        if !self.any.load(Ordering::Acquire) {
            return true;
        }
        let mut table = self.table();
        if ino.0 & RESERVED != 0 || table.has_alias(node) {
            return false;
        }
        let were_dropped = table.doubtful.remove(&node);
        self.any.store(!table.is_empty(), Ordering::Release);
        !were_dropped
    }

    /// The kernel holds no inode of a node any more.
    pub(crate) fn evicted(&self, node: NodeId) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut table = self.table();
        table.doubtful.remove(&node);
        self.any.store(!table.is_empty(), Ordering::Release);
    }

    /// Whether a number is an alias or a placeholder.
    pub(crate) fn is_reserved(ino: INodeNo) -> bool {
        ino.0 & RESERVED != 0
    }

    /// Whether the kernel was given this number of a node, of which `lookups` are outstanding, and has not forgotten it.
    pub(crate) fn is_handed_out(&self, ino: INodeNo, node: NodeId, lookups: u64) -> bool {
        let table = self.table();
        if ino.0 & RESERVED != 0 {
            return table.aliases.get(&ino.0).is_some_and(|(_, held)| *held > 0);
        }
        lookups > table.aliases.values().filter(|(n, _)| *n == node).map(|(_, held)| held).sum()
    }

    /// Every number the kernel may know a node by.
    pub(crate) fn numbers(&self, node: NodeId) -> Vec<INodeNo> {
        let mut numbers = vec![INodeNo(node.0)];
        if !self.any.load(Ordering::Acquire) {
            return numbers;
        }
        let table = self.table();
        numbers
            .extend(table.aliases.iter().filter(|(_, (n, _))| *n == node).map(|(alias, _)| INodeNo(*alias)));
        numbers
    }

    /// A number for something in a listing that was not looked up.
    pub(crate) fn placeholder(ino: NodeId) -> INodeNo {
        INodeNo(RESERVED | (ino.0 & (ALIAS - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(_: INodeNo) -> bool {
        false
    }

    #[test]
    fn an_alias_stays_current_while_an_older_inode_is_open() {
        let inodes = Inodes::default();
        inodes.renumber(NodeId(7));
        let alias = inodes.hand_out(NodeId(7));
        let older_is_open = |ino: INodeNo| ino == INodeNo(7);
        assert_eq!(inodes.forget(alias, 1, older_is_open), Some(NodeId(7)));
        assert_eq!(inodes.hand_out(NodeId(7)), alias);
        inodes.forget(alias, 1, older_is_open);
        inodes.settle(NodeId(7), older_is_open);
        assert_eq!(inodes.current(NodeId(7)), alias);
        inodes.settle(NodeId(7), nothing);
        assert_eq!(inodes.hand_out(NodeId(7)), INodeNo(7));
    }

    #[test]
    fn pages_of_an_older_version_are_dropped_at_the_first_open_after_the_alias() {
        let inodes = Inodes::default();
        let main = INodeNo(7);
        assert!(inodes.has_latest_pages(main, NodeId(7)));
        inodes.renumber(NodeId(7));
        let alias = inodes.hand_out(NodeId(7));
        assert!(!inodes.has_latest_pages(alias, NodeId(7)) && !inodes.has_latest_pages(main, NodeId(7)));
        inodes.forget(alias, 1, nothing);
        assert!(!inodes.has_latest_pages(main, NodeId(7)));
        assert!(inodes.has_latest_pages(main, NodeId(7)));
        inodes.renumber(NodeId(7));
        inodes.settle(NodeId(7), nothing);
        inodes.evicted(NodeId(7));
        assert!(inodes.has_latest_pages(main, NodeId(7)));
    }

    #[test]
    fn without_aliases_numbers_are_node_ids() {
        let inodes = Inodes::default();
        assert_eq!(inodes.hand_out(NodeId(7)), INodeNo(7));
        assert_eq!(inodes.node(INodeNo(7)), Some(NodeId(7)));
        assert_eq!(inodes.forget(INodeNo(7), 3, nothing), Some(NodeId(7)));
        assert_eq!(inodes.numbers(NodeId(7)), [INodeNo(7)]);
    }

    #[test]
    fn an_alias_lives_until_the_kernel_forgets_it() {
        let inodes = Inodes::default();
        inodes.renumber(NodeId(7));
        let alias = inodes.hand_out(NodeId(7));
        assert_ne!(alias, INodeNo(7));
        assert_eq!(inodes.node(alias), Some(NodeId(7)));
        assert_eq!(inodes.hand_out(NodeId(7)), alias);
        assert_eq!(inodes.numbers(NodeId(7)), [INodeNo(7), alias]);
        let handed_out = |ino, lookups| inodes.is_handed_out(ino, NodeId(7), lookups);
        assert!(handed_out(alias, 2) && !handed_out(INodeNo(7), 2) && handed_out(INodeNo(7), 3));
        assert_eq!(inodes.forget(alias, 1, nothing), Some(NodeId(7)));
        assert_eq!(inodes.hand_out(NodeId(7)), alias);
        assert_eq!(inodes.forget(alias, 2, nothing), Some(NodeId(7)));
        assert_eq!(inodes.hand_out(NodeId(7)), INodeNo(7));
        assert_eq!(inodes.node(alias), None);
    }

    #[test]
    fn a_second_alias_leaves_the_first_usable() {
        let inodes = Inodes::default();
        inodes.renumber(NodeId(7));
        let first = inodes.hand_out(NodeId(7));
        inodes.renumber(NodeId(7));
        let second = inodes.hand_out(NodeId(7));
        assert_ne!(first, second);
        assert_eq!(inodes.node(first), Some(NodeId(7)));
        inodes.forget(first, 1, nothing);
        assert_eq!(inodes.hand_out(NodeId(7)), second);
    }

    #[test]
    fn placeholders_lead_nowhere() {
        let inodes = Inodes::default();
        let placeholder = Inodes::placeholder(NodeId(u64::MAX));
        assert_eq!(inodes.node(placeholder), None);
        assert_eq!(inodes.forget(placeholder, 1, nothing), None);
    }
}
