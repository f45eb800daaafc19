//! Entries of one class by network, in the order of their arrival, and the networks by the number of their entries.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::Origin;

#[derive(Debug)]
pub(super) struct Crowd<K> {
    /// By site and turn.
    entries: BTreeMap<(u64, u64), K>,
    /// The same by host, where that is not the site.
    by_host: BTreeMap<(u64, u64), K>,
    counts: BTreeMap<u64, usize>,
    /// The sites by their number of entries; of equal ones that with the oldest entry is last.
    ranking: BTreeSet<(usize, Reverse<u64>, u64)>,
}

impl<K> Crowd<K> {
    pub const fn new() -> Self {
        Self {
            entries: BTreeMap::new(),
            by_host: BTreeMap::new(),
            counts: BTreeMap::new(),
            ranking: BTreeSet::new(),
        }
    }
}

impl<K: Copy> Crowd<K> {
    pub fn insert(&mut self, origin: Origin, turn: u64, key: K) {
        self.unrank(origin);
        self.entries.insert((origin.site_number(), turn), key);
        if origin.is_within() {
            self.by_host.insert((origin.host_number(), turn), key);
        }
        *self.counts.entry(origin.site_number()).or_default() += 1;
        self.rank(origin);
    }

    pub fn remove(&mut self, origin: Origin, turn: u64) {
        self.unrank(origin);
        self.entries.remove(&(origin.site_number(), turn));
        if origin.is_within() {
            self.by_host.remove(&(origin.host_number(), turn));
        }
        match self.counts.get_mut(&origin.site_number()) {
            Some(count) if *count > 1 => *count -= 1,
            _ => _ = self.counts.remove(&origin.site_number()),
        }
        self.rank(origin);
    }

    /// The oldest of the site that has most.
    pub fn oldest(&self) -> Option<K> {
        let (_, Reverse(turn), site) = self.ranking.last()?;
        self.entries.get(&(*site, *turn)).copied()
    }

    pub fn oldest_of_host(&self, origin: Origin) -> Option<K> {
        let entries = if origin.is_within() { &self.by_host } else { &self.entries };
        first(entries, origin.host_number()).map(|(_, key)| *key)
    }

    pub fn oldest_of_site(&self, origin: Origin) -> Option<K> {
        first(&self.entries, origin.site_number()).map(|(_, key)| *key)
    }

    /// Entries of the site that has most.
    pub fn largest(&self) -> usize {
        self.ranking.last().map_or(0, |(count, ..)| *count)
    }

    pub fn of_site(&self, origin: Origin) -> usize {
        self.counts.get(&origin.site_number()).copied().unwrap_or(0)
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
            && self.by_host.is_empty()
            && self.counts.is_empty()
            && self.ranking.is_empty()
    }

    fn ranked(&self, origin: Origin) -> Option<(usize, Reverse<u64>, u64)> {
        let ((site, turn), _) = first(&self.entries, origin.site_number())?;
        Some((self.of_site(origin), Reverse(*turn), *site))
    }

    fn unrank(&mut self, origin: Origin) {
        if let Some(ranked) = self.ranked(origin) {
            self.ranking.remove(&ranked);
        }
    }

    fn rank(&mut self, origin: Origin) {
        let ranked = self.ranked(origin);
        self.ranking.extend(ranked);
    }
}

/// The oldest entry of a network.
fn first<K>(entries: &BTreeMap<(u64, u64), K>, network: u64) -> Option<(&(u64, u64), &K)> {
    entries.range((network, 0)..=(network, u64::MAX)).next()
}
