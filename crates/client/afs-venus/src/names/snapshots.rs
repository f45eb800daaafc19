//! The synthetic directory of a volume's snapshots: names and order.

use std::sync::Arc;

use afs_wire::ids::VolumeId;
use afs_wire::vol::Snapshot;

use crate::api::{DirEntry, Kind, NodeId};
use crate::names::{NAME_MAX, is_dot};

/// Offset after `.` and `..`; after a snapshot, two more than its volume number.
const AFTER_DOTS: u64 = 2;

/// Snapshots with a valid name and number, ordered by volume number, which is the order of creation.
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

/// Lists snapshots from an offset, in order of creation. `node` is the directory, `parent` the volume's root, and
/// `root` gives the node of a snapshot's root.
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
