//! Snapshots that an operation would delete.

use crate::Snapshot;
use crate::scheduled::is_scheduled;

/// Snapshots that are lost when their volume is removed, or moves to a server without snapshots. A snapshot
/// made by a user is lost only with the user's consent. A dated snapshot, made by the schedule, is lost
/// without it, with a warning that gives their number.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LostSnapshots {
    by_hand: Vec<String>,
    dated: usize,
}

impl LostSnapshots {
    pub(crate) fn of(snapshots: &[Snapshot]) -> Self {
        let (dated, by_hand): (Vec<_>, Vec<_>) = snapshots.iter().partition(|s| is_scheduled(&s.name));
        Self { by_hand: by_hand.into_iter().map(|s| s.name.clone()).collect(), dated: dated.len() }
    }

    /// Whether the user has to consent.
    pub(crate) fn needs_consent(&self) -> bool {
        !self.by_hand.is_empty()
    }

    /// Their names, if there are any: `monday, tuesday, and 5 dated ones`.
    pub(crate) fn described(&self) -> Option<String> {
        let dated = match self.dated {
            0 => None,
            1 => Some("1 dated one".to_owned()),
            count => Some(format!("{count} dated ones")),
        };
        match (self.by_hand.is_empty(), dated) {
            (true, dated) => dated,
            (false, None) => Some(self.by_hand.join(", ")),
            (false, Some(dated)) => Some(format!("{}, and {dated}", self.by_hand.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{UnixSeconds, VolumeId};

    use super::*;

    fn losing(names: &[&str]) -> LostSnapshots {
        let snapshot =
            |name: &&str| Snapshot { name: (*name).to_owned(), volume: VolumeId(1), created: UnixSeconds(1) };
        LostSnapshots::of(&names.iter().map(snapshot).collect::<Vec<_>>())
    }

    #[test]
    fn dated_snapshots_are_counted_and_others_are_named() {
        assert_eq!(losing(&[]).described(), None);
        let described = |names: &[&str]| losing(names).described().unwrap_or_default();
        assert_eq!(described(&["2026-11-22"]), "1 dated one");
        assert_eq!(described(&["2026-11-22", "2026-11-21"]), "2 dated ones");
        assert_eq!(described(&["monday", "before"]), "monday, before");
        assert_eq!(described(&["monday", "2026-11-22"]), "monday, and 1 dated one");
        assert!(losing(&["monday", "2026-11-22"]).needs_consent());
        assert!(!losing(&["2026-11-22"]).needs_consent());
    }
}
