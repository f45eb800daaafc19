//! Sizes of clones and of incremental dumps: they follow what changed, not what the volume has (Howard et al. 1988, sections
//! 6.2 and 6.5).

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::sync::Arc;

use afs_kv::Kv;
use afs_sim::crash::CrashDisk;
use afs_volume::dump::{DumpOptions, VolumeDump};
use afs_volume::{CloneSpec, TABLES, Volume, VolumeStore};
use afs_wire::fs::SetStatus;
use afs_wire::ids::{Fid, Mode, Uniquifier, UnixSeconds, VnodeId, VolumeId, VolumeKind, VolumeName};
use support::*;

/// Rows of a store, and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    rows: usize,
    bytes: usize,
}

fn size(kv: &Kv) -> Size {
    let (snapshot, mut size) = (kv.snapshot(), Size { rows: 0, bytes: 0 });
    for table in TABLES {
        for row in snapshot.range(table, .., false) {
            let (key, value) = row.unwrap();
            size.rows += 1;
            size.bytes += key.len() + value.len();
        }
    }
    size
}

/// What a step adds.
fn added(kv: &Kv, step: impl FnOnce()) -> Size {
    let before = size(kv);
    step();
    let after = size(kv);
    Size { rows: after.rows - before.rows, bytes: after.bytes - before.bytes }
}

/// A store whose volume has files with so many bytes each.
fn filled(files: u32, len: usize) -> (VolumeStore, Kv, Arc<Volume>) {
    let (store, kv) = open_both(&CrashDisk::new(), &CrashDisk::new()).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    for number in 0..files {
        let fid = create(&volume, ROOT, format!("file{number:06}").as_bytes()).unwrap();
        if len > 0 {
            store_bytes(&volume, fid, 0, &vec![7; len], len as u64).unwrap();
        }
    }
    (store, kv, volume)
}

fn clone(store: &VolumeStore, id: u32) {
    let name = VolumeName::new(&format!("clone{id}")).unwrap();
    let spec = CloneSpec { id: VolumeId(id), name, kind: VolumeKind::ReadOnly, snapshot: false };
    now(store.clone_volume(VOLUME, spec)).unwrap();
}

/// A change of one file.
fn change(volume: &Arc<Volume>) {
    let status = SetStatus { mode: Some(Mode(0o600)), ..SetStatus::default() };
    let file = Fid { vnode: VnodeId(2), unique: Uniquifier(2), ..ROOT };
    update(volume, move |tx| tx.set_status(file, &status, ALICE).map(drop)).unwrap();
}

#[test]
fn a_clone_and_the_first_change_after_it_add_as_much_whatever_the_volume_has() {
    let added_beside = |files| {
        let (store, kv, volume) = filled(files, 0);
        let cloned = added(&kv, || clone(&store, 7));
        (cloned, added(&kv, || change(&volume)))
    };
    let (few, many) = (added_beside(20), added_beside(1000));
    assert_eq!(few, many);
    assert!((1..=3).contains(&few.0.rows) && few.0.bytes < 1000, "{few:?}");
    assert!((1..=3).contains(&few.1.rows), "a copy of what is changed: {few:?}");
}

#[test]
fn an_incremental_dump_does_not_have_the_bytes_of_files_that_are_unchanged() {
    let len_beside = |len| {
        let (_, _, volume) = filled(20, len);
        // What was changed in the second of the last dump is sent again.
        create(&volume, ROOT, b"last").unwrap();
        let last = volume.header().update_date;
        let changed = create(&volume, ROOT, b"changed").unwrap();
        store_bytes(&volume, changed, 0, &[1; 5000], 5000).unwrap();
        (dump_len(&volume, UnixSeconds(0)), dump_len(&volume, last))
    };
    let (small, large) = (len_beside(1000), len_beside(100_000));
    assert_eq!(small.1, large.1, "all that is sent after the first pass of a move");
    assert!(small.1 < 20_000 && large.0 > 20 * 100_000, "{small:?} {large:?}");
}

/// Bytes of a dump of what has changed since a time; everything since 0.
fn dump_len(volume: &Arc<Volume>, since: UnixSeconds) -> usize {
    let options = DumpOptions { since, all_directories: false };
    let (mut stream, mut len) = (VolumeDump::new(volume.clone(), options), 0);
    while let Some(part) = now(stream.next()).unwrap() {
        len += part.len();
    }
    len
}
