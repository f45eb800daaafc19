//! Directories in which this client has changed names without a lease: how often since the last lease, and how new objects there are.

use std::collections::BTreeMap;

use afs_wire::fs::Status;

use crate::identity::TokenId;
use crate::key::Key;
use crate::leases::models::Models;

/// Changes after which a lease is asked for: as many as a server requires (docs/protocol/extensions.md "TakeLease").
const CHANGES_MIN: u32 = 3;
/// Changes after which it is asked for again after it was refused or of little use; twice as many each time.
const AGAIN_MIN: u32 = 32;
const AGAIN_MAX: u32 = 4096;
/// Changes under one lease with which much is made in a directory.
const BUSY_MIN: u32 = 64;
/// Directories that are remembered. Of more, one is forgotten, which costs a lease at most.
const DIRECTORIES_MAX: usize = 1024;

#[derive(Default)]
pub(super) struct Runs(BTreeMap<Key, Run>);

struct Run {
    changes: u32,
    /// So many are needed.
    needed: u32,
    /// This client has just made the directory.
    is_new: bool,
    /// Much is made in the directory: it is new, or what was lent with it before was used up.
    is_busy: bool,
    models: Models,
}

impl Default for Run {
    fn default() -> Self {
        Run { changes: 0, needed: CHANGES_MIN, is_new: false, is_busy: false, models: Models::default() }
    }
}

impl Runs {
    pub fn changed(&mut self, dir: Key) {
        let run = self.run(dir);
        run.changes = run.changes.saturating_add(1);
    }

    /// This client has made the directory without a lease, and knows how new objects there are. Its lease is due at the first change.
    pub fn made(&mut self, dir: Key, models: Models) {
        let run = self.run(dir);
        *run = Run { changes: run.needed, needed: run.needed, is_new: true, is_busy: true, models };
    }

    pub fn learn(&mut self, dir: Key, token: TokenId, status: &Status) {
        self.run(dir).models.learn(token, status);
    }

    pub fn is_due(&self, dir: Key) -> bool {
        self.0.get(&dir).is_some_and(|run| run.changes >= run.needed)
    }

    pub fn models(&self, dir: Key) -> Models {
        self.0.get(&dir).map(|run| run.models.clone()).unwrap_or_default()
    }

    /// Whether much is made in the directory.
    pub fn is_busy(&self, dir: Key) -> bool {
        self.0.get(&dir).is_some_and(|run| run.is_busy)
    }

    /// The directory was leased: the next lease needs changes of its own.
    pub fn leased(&mut self, dir: Key) {
        let run = self.run(dir);
        (run.changes, run.is_new, run.is_busy) = (0, false, false);
    }

    /// So many changes were made in the directory under a lease that was used up.
    pub fn continues(&mut self, dir: Key, changes: u32, models: &Models) {
        let run = self.run(dir);
        (run.changes, run.is_busy) = (run.changes.saturating_add(changes), changes >= BUSY_MIN);
        run.models = models.clone();
    }

    /// A lease of the directory was of use.
    pub fn was_useful(&mut self, dir: Key) {
        self.run(dir).needed = CHANGES_MIN;
    }

    pub fn was_in_vain(&mut self, dir: Key) {
        let run = self.run(dir);
        run.changes = 0;
        run.needed = (run.needed * 2).clamp(AGAIN_MIN, AGAIN_MAX);
    }

    /// The lease was refused. Returns true for one of a new directory, which needs changes then as any other.
    pub fn was_refused(&mut self, dir: Key) -> bool {
        let run = self.run(dir);
        let was_new = std::mem::take(&mut run.is_new);
        match was_new {
            true => run.changes = 0,
            false => self.was_in_vain(dir),
        }
        was_new
    }

    fn run(&mut self, dir: Key) -> &mut Run {
        if self.0.len() >= DIRECTORIES_MAX && !self.0.contains_key(&dir) {
            self.0.pop_first();
        }
        self.0.entry(dir).or_default()
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{Fid, VolumeId};

    use super::*;
    use crate::key::CellIndex;

    fn dir(n: u32) -> Key {
        Key::new(CellIndex(0), Fid::root(VolumeId(n)))
    }

    #[test]
    fn a_lease_is_asked_for_after_some_changes_and_seldom_where_it_was_in_vain() {
        let mut runs = Runs::default();
        let until_due = |runs: &mut Runs| {
            let mut changes = 0;
            while !runs.is_due(dir(1)) {
                runs.changed(dir(1));
                changes += 1;
            }
            changes
        };
        assert_eq!(until_due(&mut runs), 3);
        runs.was_in_vain(dir(1));
        assert_eq!(until_due(&mut runs), 32);
        runs.was_in_vain(dir(1));
        assert_eq!(until_due(&mut runs), 64);
        (0..100).for_each(|_| runs.was_in_vain(dir(1)));
        assert_eq!(until_due(&mut runs), 4096);
        runs.leased(dir(1));
        assert_eq!(until_due(&mut runs), 4096);
        runs.leased(dir(1));
        runs.was_useful(dir(1));
        assert_eq!(until_due(&mut runs), 3);
    }

    #[test]
    fn the_lease_of_a_new_directory_is_due_at_once_and_once() {
        let mut runs = Runs::default();
        runs.made(dir(1), Models::default());
        assert!(runs.is_due(dir(1)) && runs.was_refused(dir(1)) && !runs.is_due(dir(1)));
        (0..CHANGES_MIN).for_each(|_| runs.changed(dir(1)));
        assert!(runs.is_due(dir(1)) && !runs.was_refused(dir(1)));
        (0..CHANGES_MIN).for_each(|_| runs.changed(dir(1)));
        assert!(!runs.is_due(dir(1)), "it was in vain");
    }

    #[test]
    fn the_directories_that_are_remembered_are_bounded() {
        let mut runs = Runs::default();
        (0..5000).for_each(|n| runs.changed(dir(n)));
        assert_eq!(runs.0.len(), DIRECTORIES_MAX);
    }
}
