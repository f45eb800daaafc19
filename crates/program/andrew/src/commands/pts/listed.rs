//! Set of the ids in a list that a protection server sends in parts. The list ends, whatever the server sends.

use super::route::Target;
use crate::error::{CommandError, CommandResult};
use afs_wire::ids::ViceId;
use std::collections::BTreeSet;

/// Most users and groups of a list.
const IDS_MAX: usize = 1 << 20;

/// The ids that came so far.
#[derive(Default)]
pub(crate) struct Listed {
    ids: BTreeSet<ViceId>,
    /// How many there were when the last part had come.
    before: usize,
}

impl Listed {
    /// Adds an id. Whether it is new.
    pub(crate) fn insert(&mut self, id: ViceId) -> bool {
        self.ids.insert(id)
    }

    /// All, in order.
    pub(crate) fn into_ids(self) -> Vec<ViceId> {
        self.ids.into_iter().collect()
    }

    /// To be called after each part, of which a reply has at most as many ids as fit into it.
    ///
    /// # Errors
    /// There are more than [`IDS_MAX`] ids; or none is new in a part that is not the last, which would go on for ever.
    pub(crate) fn end_part(&mut self, is_last: bool, target: &Target) -> CommandResult {
        let before = std::mem::replace(&mut self.before, self.ids.len());
        if self.ids.len() > IDS_MAX {
            return Err(endless(target, &format!("has more than {IDS_MAX} users and groups")));
        }
        if !is_last && before == self.ids.len() {
            return Err(endless(target, "does not end"));
        }
        Ok(())
    }
}

fn endless(target: &Target, why: &str) -> CommandError {
    CommandError::failed(format!("pts: the list that {} sends {why}", target.server()))
}
