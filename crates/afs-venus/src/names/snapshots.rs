//! The synthetic directory of a volume's snapshots: which of them have a name, and their order.

use std::sync::Arc;

use afs_wire::ids::VolumeId;
use afs_wire::vol::Snapshot;

use crate::api::{DirEntry, Kind, NodeId};
use crate::names::{NAME_MAX, is_dot};

/// Where the listing goes on after `.` and `..`; after a snapshot, it is two more than its volume's number.
const AFTER_DOTS: u64 = 2;

/// Those that can be entered, in the order of their volumes' numbers, which is the one in which they were made.
pub(crate) fn usable_snapshots(mut snapshots: Vec<Snapshot>) -> Arc<[Snapshot]> {
    let is_name = |name: &[u8]| {
        !name.is_empty()
            && !is_dot(name)
            && name.len() <= NAME_MAX
            && !name.iter().any(|byte| matches!(byte, b'/' | 0))
    };
    snapshots.retain(|snapshot| snapshot.volume.0 != 0 && is_name(snapshot.name.as_bytes()));
    snapshots.sort_by_key(|snapshot| snapshot.volume);
    snapshots.dedup_by_key(|snapshot| snapshot.volume);
    snapshots.into()
}

/// Lists them from an offset on, in the order in which they were made. `node` is the directory's own, `parent` that of the
/// volume's root, and `root` gives that of a snapshot's root.
pub(crate) fn list_snapshots(
    snapshots: &[Snapshot],
    (node, parent): (NodeId, NodeId),
    root: impl Fn(VolumeId) -> NodeId,
    offset: u64,
    max: usize,
) -> Vec<DirEntry> {
    let entry = |next_offset, name: &[u8], ino| DirEntry {
        next_offset,
        name: name.to_vec(),
        ino,
        kind: Some(Kind::Directory),
    };
    let dots = [entry(1, b".", node), entry(AFTER_DOTS, b"..", parent)];
    let named = |snapshot: &Snapshot| {
        let next = AFTER_DOTS + u64::from(snapshot.volume.0);
        entry(next, snapshot.name.as_bytes(), root(snapshot.volume))
    };
    let all = dots.into_iter().chain(snapshots.iter().map(named));
    all.filter(|entry| entry.next_offset > offset).take(max).collect()
}
