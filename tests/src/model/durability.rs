//! Model of what a mount with leases has stored durably (docs/semantics.md "Mounts with leases"): which changes that a program was told of may
//! be without effect after a crash of the machine, or until a lost lease is made good.
//!
//! A change is durable after an fsync, once another machine has seen it or a later change of the same directory by the same machine, and some
//! time after it was made if no fault came in between. All that is older in the directory is durable with it.

use std::collections::{BTreeMap, BTreeSet};

use super::register::{Content, Gap, Kind, Op, Time};

/// What is known of the machines that decide changes under leases, and of the faults.
#[derive(Clone, Debug)]
pub struct Durability {
    /// Time after which a change was sent if there is no fault.
    sent_within: Time,
    /// Machines that decide under leases.
    deciding: BTreeSet<usize>,
    /// When an fsync of a change had returned.
    synced: BTreeMap<Content, Time>,
    /// Times in which a lease may be lost, or a list may not reach the server.
    troubles: Vec<(Time, Time)>,
    died: BTreeMap<usize, Time>,
}

impl Durability {
    /// Without machines that take leases, and without faults.
    #[must_use]
    pub fn new(sent_within: Time) -> Self {
        Self {
            sent_within,
            deciding: BTreeSet::new(),
            synced: BTreeMap::new(),
            troubles: Vec::new(),
            died: BTreeMap::new(),
        }
    }

    /// A machine takes leases.
    pub fn decides(&mut self, client: usize) {
        self.deciding.insert(client);
    }

    /// An fsync that covers this change has returned.
    pub fn synced(&mut self, content: Content, at: Time) {
        self.synced.entry(content).or_insert(at);
    }

    /// In this time a lease of any machine may be lost. At its end, unless there is another one, all is made good.
    pub fn trouble(&mut self, from: Time, until: Time) {
        self.troubles.push((from, until));
    }

    /// A machine has crashed.
    pub fn died(&mut self, client: usize, at: Time) {
        self.died.insert(client, at);
    }

    /// For each acknowledged store, by its contents, when it may be without effect. Names of files are `directory/name`.
    #[must_use]
    pub fn gaps(&self, files: &BTreeMap<String, Vec<Op>>) -> BTreeMap<Content, Gap> {
        let seen = seen_by_others(files);
        let mut gaps = BTreeMap::new();
        for stores in in_order(files).into_values() {
            // Of the later stores in the directory, when the first was known to be durable.
            let mut durable = None;
            for store in stores.iter().rev() {
                let now = [self.synced.get(&store.content), seen.get(&store.content)];
                durable = now.into_iter().flatten().copied().chain(durable).min();
                if let Some(gap) = self.gap(store, durable) {
                    gaps.insert(store.content, gap);
                }
            }
        }
        gaps
    }

    fn gap(&self, store: &Op, durable: Option<Time>) -> Option<Gap> {
        let end = store.end.filter(|_| self.deciding.contains(&store.client))?;
        let sent = end + self.sent_within;
        let unsent_until = durable.map_or(sent, |durable| durable.min(sent));
        // What was seen or synced at any time was durable when its machine crashed.
        let died = self.died.get(&store.client).copied().filter(|_| durable.is_none());
        let first = self.troubles.iter().filter(|(from, until)| *from < unsent_until && *until >= end);
        let Some((from, until)) = first.copied().min() else {
            let from = died.filter(|at| *at < unsent_until)?;
            return Some(Gap { from, until: None });
        };
        let good = Some(self.end_of_trouble(until)).filter(|good| died.is_none_or(|at| at > *good));
        let from = died.map_or(from, |at| at.min(from)).max(end);
        Some(Gap { from, until: durable.into_iter().chain(good).min() })
    }

    /// When the troubles end that begin with one that lasts until then: what waited was sent or made good.
    fn end_of_trouble(&self, mut until: Time) -> Time {
        let after =
            |until: Time| self.troubles.iter().filter(|next| next.0 <= until).map(|next| next.1).max();
        while let Some(later) = after(until).filter(|later| *later > until) {
            until = later;
        }
        until
    }
}

/// When another machine than the one that stored them had read contents for the first time.
fn seen_by_others(files: &BTreeMap<String, Vec<Op>>) -> BTreeMap<Content, Time> {
    let stored = |op: &&Op| op.kind == Kind::Store;
    let by: BTreeMap<Content, usize> =
        files.values().flatten().filter(stored).map(|store| (store.content, store.client)).collect();
    let mut seen = BTreeMap::new();
    for read in files.values().flatten().filter(|op| op.kind == Kind::Read) {
        let Some(end) = read.end.filter(|_| by.get(&read.content) != Some(&read.client)) else { continue };
        let first = seen.entry(read.content).or_insert(end);
        *first = end.min(*first);
    }
    seen
}

/// The stores of each machine in each directory, in the order in which its programs made them.
fn in_order(files: &BTreeMap<String, Vec<Op>>) -> BTreeMap<(usize, &str), Vec<Op>> {
    let mut all: BTreeMap<_, Vec<Op>> = BTreeMap::new();
    for (path, ops) in files {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        for store in ops.iter().filter(|op| op.kind == Kind::Store) {
            all.entry((store.client, directory)).or_default().push(*store);
        }
    }
    all.values_mut().for_each(|stores| stores.sort_by_key(|store| store.begin));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(client: usize, kind: Kind, content: Content, begin: Time) -> Op {
        Op { client, kind, content, begin, end: Some(begin + 1), doubted: false, gap: None }
    }

    /// Machine 1 stores contents 1, 2 and 3 at 10, 20 and 30 in two files of a directory, and takes leases.
    fn world() -> (Durability, BTreeMap<String, Vec<Op>>) {
        let mut model = Durability::new(100);
        model.decides(1);
        let store = |content| op(1, Kind::Store, content, content * 10);
        let (a, b) = (vec![store(1), store(3)], vec![store(2)]);
        (model, [("dir/a".to_owned(), a), ("dir/b".to_owned(), b)].into())
    }

    #[test]
    fn a_crash_loses_the_last_changes_that_were_neither_synced_nor_seen() {
        let (mut model, mut files) = world();
        assert!(model.gaps(&files).is_empty());
        model.died(1, 40);
        assert_eq!(model.gaps(&files).into_keys().collect::<Vec<_>>(), [1, 2, 3]);
        model.synced(1, 15);
        let gaps = model.gaps(&files);
        assert_eq!(gaps.into_iter().collect::<Vec<_>>(), [2, 3].map(|n| (n, Gap { from: 40, until: None })));
        // Seen after the crash, and so was what came before.
        files.get_mut("dir/b").unwrap().push(op(2, Kind::Read, 2, 500));
        assert_eq!(model.gaps(&files).into_keys().collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn what_is_old_enough_was_sent() {
        let (mut model, files) = world();
        model.died(1, 115);
        assert_eq!(model.gaps(&files).into_keys().collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn a_lost_lease_hides_changes_until_they_are_made_good() {
        let (mut model, files) = world();
        model.trouble(25, 60);
        model.trouble(55, 90);
        let gaps = |model: &Durability, until| {
            let gap = |from| Gap { from, until };
            let expected = [(1, gap(25)), (2, gap(25)), (3, gap(31))];
            assert_eq!(model.gaps(&files).into_iter().collect::<Vec<_>>(), expected);
        };
        gaps(&model, Some(90));
        model.died(1, 80);
        gaps(&model, None);
        model.synced(3, 70);
        gaps(&model, Some(70));
    }

    #[test]
    fn without_leases_what_is_acknowledged_is_durable() {
        let (mut model, files) = world();
        model.deciding.clear();
        model.died(1, 40);
        model.trouble(0, 1000);
        assert!(model.gaps(&files).is_empty());
    }
}
