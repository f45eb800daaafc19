//! Iteration over a volume's vnodes by number, and over those changed since a clone.

use std::collections::BTreeSet;
use std::ops::Bound;

use afs_kv::Snapshot;
use afs_wire::ids::VnodeId;
use bytes::Bytes;

use crate::error::VolumeError;
use crate::ids::Epoch;
use crate::key::{self, CHANGES, RowId, VNODES};
use crate::location::Location;
use crate::record::VnodeRecord;
use crate::rows::{Rows, damaged, index_damaged};
use crate::volume::Volume;

impl Volume {
    /// Records of the next directories, or of the next files and links, behind vnode `after`: at most
    /// `limit`, by ascending number, all from one state. `VnodeId(0)` starts; an empty result is the end.
    ///
    /// Two calls on a read-write volume may see two states.
    pub fn vnodes_after(
        &self,
        directories: bool,
        after: VnodeId,
        limit: usize,
    ) -> Result<Vec<VnodeRecord>, VolumeError> {
        let snapshot = self.store().kv.snapshot();
        let location = self.location_at(&snapshot)?;
        // No vnode of the class has this number or a higher one, so files are not scanned for directories
        // behind the last.
        let header = self.header();
        let numbers = if directories { &header.directories } else { &header.files };
        let end = VnodeId(numbers.next);
        vnodes_between(&snapshot, location, (after, end), limit, |vnode| vnode.is_directory() == directories)
    }

    /// Vnodes behind `after` that were created, changed or deleted since `clone` was made of this volume's
    /// group, at most `limit`, by ascending number: each with its record, or without if there is none now.
    /// Some may be unchanged. The cost depends on the changes, not on the volume's size.
    ///
    /// # Errors
    /// `Invalid` if the two share no data, or `clone` is the newer one.
    pub fn changed_since(
        &self,
        clone: &Self,
        after: VnodeId,
        limit: usize,
    ) -> Result<Vec<(VnodeId, Option<VnodeRecord>)>, VolumeError> {
        let snapshot = self.store().kv.snapshot();
        let (location, older) = (self.location_at(&snapshot)?, clone.location_at(&snapshot)?);
        if location.group != older.group || location.epoch < older.epoch {
            return Err(VolumeError::Invalid);
        }
        let changed = changed_vnodes(&snapshot, older, location, after, limit)?;
        let with_record = |vnode| Ok((vnode, snapshot.vnode_row(location.group, vnode, location.epoch)?));
        changed.into_iter().map(with_record).collect()
    }
}

/// The newest row of a vnode as of some epoch.
pub(crate) struct VnodeRow {
    pub(crate) vnode: VnodeId,
    pub(crate) written: Epoch,
    pub(crate) row: Bytes,
}

/// Records as of an epoch, of vnodes between two numbers, both excluded.
pub(crate) fn vnodes_between(
    snapshot: &Snapshot,
    location: Location,
    range: (VnodeId, VnodeId),
    limit: usize,
    wanted: impl Fn(VnodeId) -> bool,
) -> Result<Vec<VnodeRecord>, VolumeError> {
    let decode = |VnodeRow { vnode, row, .. }| {
        VnodeRecord::decode(vnode, row).map_err(|_| damaged(vnode, "its record cannot be decoded"))
    };
    vnode_rows_between(snapshot, location, range, limit, wanted)?.into_iter().map(decode).collect()
}

/// As [`vnodes_between`], not decoded.
pub(crate) fn vnode_rows_between(
    snapshot: &Snapshot,
    location: Location,
    (after, end): (VnodeId, VnodeId),
    limit: usize,
    wanted: impl Fn(VnodeId) -> bool,
) -> Result<Vec<VnodeRow>, VolumeError> {
    let first = RowId::Vnode(location.group, after).key(Epoch(u32::MAX));
    let end = RowId::Vnode(location.group, end).key(Epoch(0));
    let mut found: Vec<VnodeRow> = Vec::new();
    if first >= end {
        return Ok(found);
    }
    let bounds = (Bound::Excluded(&first[..]), Bound::Excluded(&end[..]));
    for row in snapshot.range(VNODES, bounds, false) {
        let (key, row) = row?;
        let (vnode, written) =
            from_key(&key).ok_or_else(|| index_damaged("the key of a vnode is too short"))?;
        if !wanted(vnode) || written > location.epoch {
            continue;
        }
        let full = found.len() >= limit;
        match found.last_mut() {
            Some(last) if last.vnode == vnode => *last = VnodeRow { vnode, written, row },
            // The newest row of the previous vnode is a tombstone.
            Some(last) if last.row.is_empty() => *last = VnodeRow { vnode, written, row },
            _ if full => break,
            _ => found.push(VnodeRow { vnode, written, row }),
        }
    }
    found.pop_if(|last| last.row.is_empty());
    Ok(found)
}

fn from_key(key: &[u8]) -> Option<(VnodeId, Epoch)> {
    let word = |at: usize| Some(u32::from_be_bytes(key.get(at..at + 4)?.try_into().ok()?));
    Some((VnodeId(word(4)?), Epoch(word(8)?)))
}

/// The lowest vnodes behind `after` that are listed in an epoch behind `older`, up to the location's.
fn changed_vnodes(
    snapshot: &Snapshot,
    older: Location,
    location: Location,
    after: VnodeId,
    limit: usize,
) -> Result<BTreeSet<VnodeId>, VolumeError> {
    let mut changed = BTreeSet::new();
    let mut epoch = older.epoch;
    // Epochs without changes, possibly many, are skipped.
    while let Some(next) = next_changed(snapshot, location, epoch)? {
        epoch = next;
        let (start, end) = key::changed_vnodes(location.group, epoch, after);
        for row in snapshot.range(CHANGES, key::bounds(&start, Some(&end)), false).take(limit) {
            if let Some((RowId::Vnode(_, vnode), _)) = key::from_change(&row?.0) {
                changed.insert(vnode);
            }
        }
        while changed.len() > limit {
            changed.pop_last();
        }
    }
    Ok(changed)
}

/// The next epoch behind `epoch`, up to the location's, with changes.
fn next_changed(snapshot: &Snapshot, location: Location, epoch: Epoch) -> Result<Option<Epoch>, VolumeError> {
    let Some(start) = key::after_prefix(&key::epoch(location.group, epoch)) else { return Ok(None) };
    let end = key::after_prefix(&key::epoch(location.group, location.epoch));
    if end.as_ref().is_some_and(|end| start >= *end) {
        return Ok(None);
    }
    let row = snapshot.range(CHANGES, key::bounds(&start, end.as_deref()), false).next().transpose()?;
    Ok(row.and_then(|(key, _)| key::from_change(&key)).map(|(_, epoch)| epoch))
}
