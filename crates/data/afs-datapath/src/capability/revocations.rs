//! Bounded table of revoked groups, by group, with the generation of each; and a counter of changes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{Access, Capability, Generation, Group};

/// Default of the most groups in the table of a drive.
pub const GROUPS_MAX: usize = 16_384;

/// Number of revocations so far. A stream in progress compares it with the number at which it last looked at its capability.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Changes(u64);

/// The generations of groups of objects.
///
/// A group that is not in the table has the generation `base`. A revocation puts the group into the table with a generation
/// that no capability has yet. When the table is full, `base` becomes that generation instead, and the table empty: every
/// capability is revoked then, and clients ask for new ones. So no revocation is ever lost, and nothing is kept for groups
/// that were never revoked.
#[derive(Debug)]
pub struct Revocations {
    changes: AtomicU64,
    groups_max: usize,
    table: Mutex<Table>,
}

/// Revocations of one run.
const RUN_SHIFT: u32 = 32;

#[derive(Debug, Default)]
struct Table {
    latest: Generation,
    base: Generation,
    revoked: BTreeMap<Group, Generation>,
}

impl Default for Revocations {
    fn default() -> Self {
        Self::new(GROUPS_MAX)
    }
}

impl Revocations {
    /// An empty table for at most `groups_max` groups.
    #[must_use]
    pub fn new(groups_max: usize) -> Self {
        Self { changes: AtomicU64::new(0), groups_max, table: Mutex::default() }
    }

    /// An empty table of a drive that does not keep it: every run begins with a generation that is greater than all of the
    /// earlier runs, so that nothing that was sealed or revoked before is good any more. Runs have numbers below 2^32.
    #[must_use]
    pub fn of_run(run: u64) -> Self {
        let first = Generation(run << RUN_SHIFT);
        let table = Table { latest: first, base: first, revoked: BTreeMap::new() };
        Self { table: Mutex::new(table), ..Self::default() }
    }

    /// The latest generation of any group: a capability or binding with it is good until something is revoked after this.
    #[must_use]
    pub fn latest(&self) -> Generation {
        self.table.lock().latest
    }

    /// The present generation of a group. To be read before the rights are, on which a capability is decided: then a change of
    /// the rights in between revokes the capability.
    #[must_use]
    pub fn generation(&self, group: Group) -> Generation {
        self.table.lock().generation(group)
    }

    /// Revokes the capabilities for a group; for a volume, those for its directories and files too. A capability for a file is not
    /// revoked with the group of the directory in which the file is.
    ///
    /// When this returns, no access by such a capability begins any more, and one in progress ends before its next piece.
    pub fn revoke(&self, group: Group) {
        self.table.lock().revoke(group, self.groups_max);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Revokes all capabilities.
    pub fn revoke_all(&self) {
        self.table.lock().revoke_all();
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Whether a capability has not been revoked. One to manage cannot be: who has it has the drive's key, and seals another
    /// one.
    #[must_use]
    pub fn is_current(&self, capability: &Capability) -> bool {
        let is_of_chunks = matches!(capability.group, Group::Chunks(_));
        let is_managing = is_of_chunks || capability.access.permits(Access::MANAGE);
        is_managing || capability.generation >= self.generation(capability.group)
    }

    /// Number of revocations so far, for [`Revocations::is_still_current`]. To be read before the capability is looked at.
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes(self.changes.load(Ordering::Acquire))
    }

    /// As [`Revocations::is_current`], for a capability that was current at `seen`, which is updated. Costs one load while
    /// nothing is revoked.
    #[must_use]
    pub fn is_still_current(&self, capability: &Capability, seen: &mut Changes) -> bool {
        let now = self.changes();
        if now == *seen {
            return true;
        }
        *seen = now;
        self.is_current(capability)
    }

    /// How often something was revoked.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.changes().0
    }

    /// Number of groups in the table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.lock().revoked.len()
    }

    /// Whether no group is in the table.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Table {
    fn generation(&self, group: Group) -> Generation {
        let of = |group| self.revoked.get(&group).copied().unwrap_or(self.base);
        group.volume().map(|volume| of(Group::Volume(volume))).max(Some(of(group))).unwrap_or(self.base)
    }

    fn revoke(&mut self, group: Group, groups_max: usize) {
        if !self.revoked.contains_key(&group) && self.revoked.len() >= groups_max {
            return self.revoke_all();
        }
        self.latest.0 += 1;
        self.revoked.insert(group, self.latest);
    }

    fn revoke_all(&mut self) {
        self.latest.0 += 1;
        self.base = self.latest;
        self.revoked.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::{ByteRange, DriveId, HolderId, KeyEpoch};
    use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};

    fn directory(vnode: u32) -> Group {
        Group::Directory(Fid::new(VolumeId(5), VnodeId(vnode), Uniquifier(1)))
    }

    fn capability(revocations: &Revocations, group: Group) -> Capability {
        Capability {
            drive: DriveId(1),
            epoch: KeyEpoch(1),
            group,
            access: Access::READ,
            range: ByteRange::ALL,
            expires: 0,
            generation: revocations.generation(group),
            holder: HolderId(1),
        }
    }

    #[test]
    fn a_revocation_ends_the_earlier_capabilities_of_its_group() {
        let revocations = Revocations::default();
        let (one, other) = (capability(&revocations, directory(1)), capability(&revocations, directory(3)));
        revocations.revoke(directory(1));
        assert!(!revocations.is_current(&one) && revocations.is_current(&other));
        let new = capability(&revocations, directory(1));
        assert!(revocations.is_current(&new));
        revocations.revoke(Group::Volume(VolumeId(5)));
        assert!(!revocations.is_current(&new) && !revocations.is_current(&other));
        assert!(revocations.is_current(&capability(&revocations, directory(1))));
    }

    #[test]
    fn a_full_table_revokes_all_and_loses_nothing() {
        let revocations = Revocations::new(3);
        let earlier: Vec<_> = (0..9).map(|n| capability(&revocations, directory(2 * n + 1))).collect();
        for n in 0..4 {
            revocations.revoke(directory(2 * n + 1));
            assert!(revocations.len() <= 3);
            assert!((0..=n).all(|n| !revocations.is_current(&earlier[n as usize])), "{n}");
        }
        assert!(revocations.is_empty() && !revocations.is_current(&earlier[8]));
        assert!(revocations.is_current(&capability(&revocations, directory(1))));
    }

    #[test]
    fn a_run_honours_nothing_of_an_earlier_one() {
        let (first, second) = (Revocations::of_run(1), Revocations::of_run(2));
        let early = capability(&first, directory(1));
        first.revoke(directory(3));
        let late = Capability { generation: first.latest(), ..early };
        assert!(first.is_current(&early) && first.is_current(&late));
        assert!(!second.is_current(&early) && !second.is_current(&late));
        assert!(second.is_current(&Capability { generation: second.latest(), ..early }));
        let managing = Capability { access: Access::MANAGE, ..early };
        assert!(second.is_current(&managing));
    }

    #[test]
    fn a_stream_looks_again_after_a_revocation_alone() {
        let revocations = Revocations::default();
        let held = capability(&revocations, directory(1));
        let mut seen = revocations.changes();
        assert!(revocations.is_still_current(&held, &mut seen));
        revocations.revoke(directory(3));
        assert!(revocations.is_still_current(&held, &mut seen));
        assert_eq!(seen, revocations.changes());
        revocations.revoke_all();
        assert!(!revocations.is_still_current(&held, &mut seen));
    }
}
