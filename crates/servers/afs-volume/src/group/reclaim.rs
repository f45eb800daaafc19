//! Background deletion of epochs that no volume references, in bounded steps, each a transaction that leaves
//! the store consistent.
//!
//! Of a group's epochs to be deleted the newest comes first. All that are newer than every other are truncated
//! together ([`super::truncate`]): one that was drained in part has lost rows and changes that name its chunks, so
//! it can be the newest state no more. A middle epoch is drained into its neighbours ([`super::drain`]). A group
//! with no other epochs is deleted as a whole ([`super::wipe`]).

use std::sync::Arc;

use afs_kv::Txn;

use super::epochs::{self, Held};
use super::{drain, truncate, wipe};
use crate::error::VolumeError;
use crate::ids::{Epoch, GroupId};
use crate::key::{self, EPOCHS, GROUPS, WORK};
use crate::location::Location;
use crate::store::{Store, VolumeStore};

/// The work of one step.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    Nothing,
    /// Only a restore in progress.
    Wait,
    Wipe,
    /// All epochs after this one are to be deleted.
    Truncate {
        to: Epoch,
    },
    Drain {
        epoch: Epoch,
        older: Option<Epoch>,
        newer: Epoch,
    },
}

impl VolumeStore {
    /// One step for one group with work, the groups in turn; false if there is none.
    pub(crate) async fn reclaim_groups(&self) -> Result<bool, VolumeError> {
        for group in self.store.groups_with_work()? {
            if self.store.reclaim_group(group).await? {
                self.store.had_its_turn(group);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Store {
    /// One step for this group; false if nothing can be done now.
    pub(crate) async fn reclaim_group(self: &Arc<Self>, group: GroupId) -> Result<bool, VolumeError> {
        let store = self.clone();
        let step = self.kv.update(move |txn| {
            let staging = store.is_staging(group);
            let worked = step(txn, group, staging)?;
            let store = store.clone();
            txn.before_visible(move |_| store.work.notify_one());
            Ok::<_, VolumeError>(worked)
        });
        Ok(step.await?)
    }
}

fn step(txn: &mut Txn<'_>, group: GroupId, staging: bool) -> Result<bool, VolumeError> {
    if txn.get(GROUPS, &key::group(group))?.is_none() {
        return Ok(false);
    }
    let epochs = epochs::all(txn, group)?;
    let done = match task(&epochs, staging) {
        Task::Wait => return Ok(false),
        Task::Nothing => {
            let had = txn.get(WORK, &key::group(group))?.is_some();
            txn.delete(WORK, &key::group(group));
            return Ok(had);
        }
        Task::Wipe => return wipe::step(txn, group).map(|()| true),
        Task::Truncate { to } => truncate::step(txn, Location { group, epoch: to })?
            .then_some(Epoch(to.0.saturating_add(1))..=Epoch(u32::MAX)),
        Task::Drain { epoch, older, newer } => {
            drain::step(txn, Location { group, epoch }, older, newer)?.then_some(epoch..=epoch)
        }
    };
    if let Some(gone) = done {
        let gone = epochs.into_iter().filter(|(epoch, _)| gone.contains(epoch));
        gone.for_each(|(epoch, _)| txn.delete(EPOCHS, &key::epoch(group, epoch)));
    }
    Ok(true)
}

/// Decides by the epochs of a group, oldest first, and by whether a restore is in progress.
fn task(epochs: &[(Epoch, Held)], staging: bool) -> Task {
    let is_dead = |held: Held| match held {
        Held::By(holders) => holders == 0,
        Held::Staged => !staging,
    };
    if epochs.iter().all(|(_, held)| is_dead(*held)) {
        return Task::Wipe;
    }
    let Some(at) = epochs.iter().rposition(|(_, held)| is_dead(*held)) else {
        return if epochs.iter().any(|(_, held)| *held == Held::Staged) { Task::Wait } else { Task::Nothing };
    };
    let at_epoch = |at: usize| epochs.get(at).map(|(epoch, _)| *epoch);
    let older = at.checked_sub(1).and_then(at_epoch);
    let newest_that_stays = epochs.iter().rfind(|(_, held)| !is_dead(*held));
    match (at_epoch(at), at_epoch(at + 1), newest_that_stays) {
        (Some(epoch), Some(newer), _) => Task::Drain { epoch, older, newer },
        (_, None, Some((to, _))) => Task::Truncate { to: *to },
        // No epoch is referenced.
        _ => Task::Wipe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_that_is_to_go_goes_first() {
        let by = |epoch, holders| (Epoch(epoch), Held::By(holders));
        assert_eq!(task(&[by(1, 1)], false), Task::Nothing);
        assert_eq!(task(&[by(1, 0)], false), Task::Wipe);
        assert_eq!(task(&[], false), Task::Wipe);
        assert_eq!(task(&[by(1, 0), by(2, 0)], false), Task::Wipe);
        let (one, two, three) = (Epoch(1), Epoch(2), Epoch(3));
        assert_eq!(task(&[by(1, 1), by(2, 0)], false), Task::Truncate { to: one });
        assert_eq!(task(&[by(1, 1), by(2, 0), by(3, 0)], false), Task::Truncate { to: one });
        assert_eq!(
            task(&[by(1, 0), by(2, 0), by(3, 1)], false),
            Task::Drain { epoch: two, older: Some(one), newer: three }
        );
        assert_eq!(task(&[by(1, 0), by(3, 1)], false), Task::Drain { epoch: one, older: None, newer: three });
        let staged = [by(1, 1), (two, Held::Staged)];
        assert_eq!(task(&staged, true), Task::Wait);
        assert_eq!(task(&staged, false), Task::Truncate { to: one });
    }
}
