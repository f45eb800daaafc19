//! Location of a volume's rows (group and epoch), by commit; reclones and restores change it.

use crate::error::VolumeError;
use crate::header::VolumeHeader;
use crate::ids::{Epoch, GroupId};

/// A state of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location {
    pub(crate) group: GroupId,
    pub(crate) epoch: Epoch,
}

impl Location {
    pub(crate) fn of(header: &VolumeHeader) -> Self {
        Self { group: header.group, epoch: header.epoch }
    }
}

/// The location of a volume by commit number. A reader's snapshot and the header in memory may belong to two
/// commits: the snapshot's number determines the location.
pub(crate) struct Locations {
    now: Option<Location>,
    since: u64,
    before: Option<Location>,
    before_since: u64,
}

impl Locations {
    pub(crate) fn new(location: Location) -> Self {
        Self { now: Some(location), since: 0, before: None, before_since: 0 }
    }

    /// The location from this commit on; `None` if the volume was deleted.
    pub(crate) fn set(&mut self, location: Option<Location>, sequence: u64) {
        if location != self.now {
            (self.before, self.before_since) = (self.now, self.since);
            (self.now, self.since) = (location, sequence);
        }
    }

    /// The location as of a commit. `Busy` if the commit is older than what is remembered, on which the
    /// reader retries.
    pub(crate) fn at(&self, sequence: u64) -> Result<Location, VolumeError> {
        let location = match sequence {
            _ if sequence >= self.since => self.now,
            _ if sequence >= self.before_since => self.before,
            _ => return Err(VolumeError::Busy),
        };
        location.ok_or(VolumeError::NoVolume)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_number_tells_the_place() {
        let location = |epoch| Location { group: GroupId(1), epoch: Epoch(epoch) };
        let mut locations = Locations::new(location(1));
        locations.set(Some(location(1)), 5);
        assert_eq!(locations.at(0).ok(), Some(location(1)));
        locations.set(Some(location(2)), 10);
        locations.set(Some(location(3)), 20);
        assert_eq!([10, 19, 20, 30].map(|at| locations.at(at).unwrap().epoch.0), [2, 2, 3, 3]);
        assert!(matches!(locations.at(9), Err(VolumeError::Busy)));
        locations.set(None, 40);
        assert!(matches!(locations.at(40), Err(VolumeError::NoVolume)));
        assert_eq!(locations.at(39).ok(), Some(location(3)));
    }
}
