//! Table of inode numbers handed out to the kernel.
//!
//! The number of an inode is usually Venus' node id. Two kinds of number are made here and have bit 63 set:
//!
//! * an **alias** is a further number of a node. The kernel has one set of pages and one backing file for each inode.
//!   When an open file uses an older version of the data, a new open of the newer version gets an inode of its own.
//!   Programs see the number of the node in both cases (`st_ino`). An alias is the number of new look-ups as long as
//!   another inode of the node is open, even while the kernel holds no look-up of it: after ESTALE the kernel looks the
//!   name up, returns that look-up, and looks the name up once more.
//! * a **placeholder** is the number of an entry in a listing whose object is not known yet (a mount point that was not
//!   crossed). Every use of it fails with ESTALE, upon which the kernel looks the name up.

use afs_venus::NodeId;
use fuser::INodeNo;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

const RESERVED: u64 = 1 << 63;
const ALIAS: u64 = 1 << 62;

/// Table of aliases. It is nearly always empty, and then no lock is taken.
#[derive(Default)]
pub struct Inodes {
    any: AtomicBool,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next: u64,
    /// From an alias to its node, and the number of look-ups that the kernel holds of it.
    aliases: BTreeMap<u64, (NodeId, u64)>,
    /// The alias that new look-ups of a node get.
    current: BTreeMap<NodeId, u64>,
    /// Nodes for whose own number the kernel may hold pages of another version than the one opened last.
    doubtful: BTreeSet<NodeId>,
}

impl Table {
    fn has_alias(&self, node: NodeId) -> bool {
        self.aliases.values().any(|(n, _)| *n == node)
    }

    fn is_empty(&self) -> bool {
        self.aliases.is_empty() && self.doubtful.is_empty()
    }

    /// Whether another number of this node than `ino` is open.
    fn is_rivalled(&self, node: NodeId, ino: u64, is_open: impl Fn(INodeNo) -> bool) -> bool {
        let of_node = self.aliases.iter().filter(|(_, (n, _))| *n == node).map(|(alias, _)| *alias);
        of_node.chain([node.0]).any(|other| other != ino && is_open(INodeNo(other)))
    }
}

impl std::fmt::Debug for Inodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inodes")
    }
}

impl Inodes {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    /// The node of a number; `None` for a placeholder. Whether the kernel was given the number, and still has it, Venus knows.
    #[must_use]
    pub fn node(&self, ino: INodeNo) -> Option<NodeId> {
        if ino.0 & RESERVED == 0 {
            return Some(NodeId(ino.0));
        }
        self.table().aliases.get(&ino.0).map(|(node, _)| *node)
    }

    /// The number to hand out for a node; counts one look-up.
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
        if !self.any.load(Ordering::Acquire) {
            return INodeNo(node.0);
        }
        INodeNo(self.table().current.get(&node).copied().unwrap_or(node.0))
    }

    /// Gives the node a new number for look-ups from now on.
    pub(crate) fn renumber(&self, node: NodeId) {
        let mut table = self.table();
        table.next += 1;
        let alias = RESERVED | ALIAS | table.next;
        let replaced = table.current.insert(node, alias);
        table.aliases.insert(alias, (node, 0));
        table.doubtful.insert(node);
        // An alias without look-ups can be dropped; others are dropped when the kernel forgets them.
        if let Some(old) = replaced.filter(|old| table.aliases.get(old).is_some_and(|(_, n)| *n == 0)) {
            table.aliases.remove(&old);
        }
        self.any.store(true, Ordering::Release);
    }

    /// The kernel returns `lookups` look-ups of a number. Returns the node whose look-ups are to be returned to Venus.
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

    /// Called after an inode of a node was closed: drops an alias that was kept only because of it.
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

    /// Drops an alias of which the kernel holds no look-up, unless it separates new opens from older ones.
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

    /// Whether the pages that the kernel holds for a number of a node, which is being opened, are of the version that
    /// was opened last under any number. If not, the kernel drops them.
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

    /// Called when the kernel has dropped all inodes of a node.
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

    /// Whether the kernel was given this number of a node, of which `lookups` are outstanding, and has not returned it.
    pub(crate) fn is_handed_out(&self, ino: INodeNo, node: NodeId, lookups: u64) -> bool {
        let table = self.table();
        if ino.0 & RESERVED != 0 {
            return table.aliases.get(&ino.0).is_some_and(|(_, held)| *held > 0);
        }
        lookups > table.aliases.values().filter(|(n, _)| *n == node).map(|(_, held)| held).sum()
    }

    /// Every number under which the kernel may know a node.
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

    /// The number of an entry in a listing that was not looked up.
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
