//! Location of a volume's rows (group and epoch), by commit; reclones and restores change it.

use crate::error::VolumeError;
use crate::header::VolumeHeader;
use crate::ids::{Epoch, GroupId};

/// A state of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) group: GroupId,
    pub(crate) epoch: Epoch,
}

impl Place {
    pub(crate) fn of(header: &VolumeHeader) -> Self {
        Self { group: header.group, epoch: header.epoch }
    }
}

/// The location of a volume by commit number. A reader's snapshot and the header in memory may belong to two
/// commits: the snapshot's number determines the location.
pub(crate) struct Places {
    now: Option<Place>,
    since: u64,
    before: Option<Place>,
    before_since: u64,
}

impl Places {
    pub(crate) fn new(place: Place) -> Self {
        Self { now: Some(place), since: 0, before: None, before_since: 0 }
    }

    /// The location from this commit on; `None` if the volume was deleted.
    pub(crate) fn set(&mut self, place: Option<Place>, sequence: u64) {
        if place != self.now {
            (self.before, self.before_since) = (self.now, self.since);
            (self.now, self.since) = (place, sequence);
        }
    }

    /// The location as of a commit. `Busy` if the commit is older than what is remembered, on which the
    /// reader retries.
    pub(crate) fn at(&self, sequence: u64) -> Result<Place, VolumeError> {
        let place = match sequence {
            _ if sequence >= self.since => self.now,
            _ if sequence >= self.before_since => self.before,
            _ => return Err(VolumeError::Busy),
        };
        place.ok_or(VolumeError::NoVolume)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_number_tells_the_place() {
        let place = |epoch| Place { group: GroupId(1), epoch: Epoch(epoch) };
        let mut places = Places::new(place(1));
        places.set(Some(place(1)), 5);
        assert_eq!(places.at(0).ok(), Some(place(1)));
        places.set(Some(place(2)), 10);
        places.set(Some(place(3)), 20);
        assert_eq!([10, 19, 20, 30].map(|at| places.at(at).unwrap().epoch.0), [2, 2, 3, 3]);
        assert!(matches!(places.at(9), Err(VolumeError::Busy)));
        places.set(None, 40);
        assert!(matches!(places.at(40), Err(VolumeError::NoVolume)));
        assert_eq!(places.at(39).ok(), Some(place(3)));
    }
}
