//! Complete content of a volume, as a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_kv::Kv;
use afs_volume::{
    ImageData, Restore, TABLES, VnodeImage, VnodeRecord, Volume, VolumeError, VolumeStore, blocks,
};
use afs_wire::dir::{self, Blob, PAGE_LEN};
use afs_wire::fs::FileKind;
use afs_wire::ids::{Fid, VnodeId};
use bytes::Bytes;

use super::model::{Model, Node};
use super::{VOLUME, now, read_bytes, run_background};

/// Everything visible in a volume, as a model; its counters are checked on the way.
pub fn read(volume: &Arc<Volume>) -> Model {
    let mut nodes = BTreeMap::new();
    let mut used = 0;
    for record in records(volume) {
        used += record.blocks();
        assert!(record.blocks() <= blocks(record.length), "holes count");
        let data = read_bytes(volume, record.fid(volume.id()), 0, u64::MAX).unwrap();
        assert_eq!(data.len() as u64, record.length);
        nodes.insert(record.fid(VOLUME), node(&record, data));
    }
    let header = volume.header();
    assert_eq!((header.file_count, header.blocks_used), (nodes.len() as u64, used), "{}", volume.id());
    Model { nodes }
}

/// All records, directories first, page by page.
pub fn records(volume: &Arc<Volume>) -> Vec<VnodeRecord> {
    let mut all: Vec<VnodeRecord> = Vec::new();
    for directories in [true, false] {
        let mut after = VnodeId(0);
        loop {
            let some = volume.vnodes_after(directories, after, 3).unwrap();
            let Some(last) = some.last() else { break };
            assert!(some.iter().all(|record| record.vnode > after && record.is_directory() == directories));
            after = last.vnode;
            all.extend(some);
        }
    }
    all
}

fn node(record: &VnodeRecord, data: Vec<u8>) -> Node {
    let mut node = Node {
        kind: record.kind,
        data,
        version: record.data_version.0,
        links: record.link_count,
        parent: Fid::new(VOLUME, record.parent, record.parent_unique),
        names: BTreeMap::new(),
    };
    if record.kind == FileKind::Directory {
        let mut blob = Blob::from_bytes(std::mem::take(&mut node.data)).unwrap();
        let summary = dir::check(&mut blob).unwrap();
        assert_eq!(summary.this, (record.vnode, record.unique));
        let named = blob.entries(0).filter(|entry| entry.name != b"." && entry.name != b"..");
        node.names =
            named.map(|entry| (entry.name.to_vec(), Fid::new(VOLUME, entry.vnode, entry.unique))).collect();
    }
    node
}

/// Writes a vnode of another volume into a restore.
pub fn put(restore: &mut Restore, from: &Arc<Volume>, record: &VnodeRecord) -> Result<(), VolumeError> {
    let bytes = read_bytes(from, record.fid(from.id()), 0, u64::MAX)?;
    let data = match record.kind {
        FileKind::File => {
            let mut writer = restore.write_data()?;
            now(writer.push(Bytes::from(bytes)))?;
            ImageData::Bytes(now(writer.finish())?)
        }
        FileKind::Symlink => ImageData::Link(Bytes::from(bytes)),
        _ => ImageData::Pages(bytes.chunks(PAGE_LEN).map(Bytes::copy_from_slice).collect()),
    };
    now(restore.put(VnodeImage::of(record), data))
}

/// Deletes every remaining volume; nothing may be left.
pub fn check_nothing_leaks(store: &VolumeStore, kv: &Kv) {
    for volume in store.volumes() {
        now(store.delete_volume(volume.id())).unwrap();
    }
    run_background(store);
    let snapshot = kv.snapshot();
    for table in TABLES.iter().filter(|table| **table != "volume.meta") {
        let left: Vec<_> = snapshot.range(table, .., false).map(Result::unwrap).collect();
        assert!(left.is_empty(), "{table} has {} rows left, the first {:?}", left.len(), left[0]);
    }
    drop(snapshot);
    let report = now(store.sweep()).unwrap();
    assert_eq!((report.live, report.missing.len()), (0, 0));
}
