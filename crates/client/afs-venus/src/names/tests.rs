//! Tests of the names alone: no server, no cell.

use afs_wire::dir::{self, Blob};
use afs_wire::fs::Status;
use afs_wire::ids::{DataVersion, Fid, Mode, Uniquifier, UnixSeconds, VnodeId, VolumeId};
use afs_wire::vol::Snapshot;

use super::*;
use crate::api::NodeId;
use crate::key::CellIndex;
use crate::vnode::Vnode;

fn key(n: u32) -> Key {
    Key::new(CellIndex(0), Fid::new(VolumeId(1), VnodeId(n), Uniquifier(1)))
}

fn names(bytes_max: u64) -> (Names, Arc<VnodeTable>) {
    let vnodes = Arc::new(VnodeTable::new(100));
    let sysnames = vec!["amd64_linux26".into(), "linux".into()];
    let snapshots = Some(".snapshots".into());
    (Names::new(RootKind::Cells, sysnames, snapshots, vnodes.clone(), bytes_max), vnodes)
}

/// Contents of a directory with these names and vnode numbers.
fn blob(of: Key, names: &[(&str, u32)]) -> Blob {
    let own = (of.fid.vnode, of.fid.unique);
    let mut blob = Blob::create(own, own);
    for (name, n) in names {
        dir::insert(&mut blob, name.as_bytes(), (VnodeId(*n), Uniquifier(1))).unwrap();
    }
    blob
}

fn has(vnode: &Vnode, name: &str) -> Option<bool> {
    let state = vnode.state();
    Some(state.directory.as_ref()?.blob().lookup(name.as_bytes()).unwrap().is_some())
}

#[test]
fn sys_is_each_of_its_values_and_then_itself() {
    let (names, _) = names(0);
    assert_eq!(names.candidates(b"bin"), [b"bin".to_vec()]);
    let meant: Vec<String> =
        names.candidates(b"x.@sys").into_iter().map(|name| String::from_utf8(name).unwrap()).collect();
    assert_eq!(meant, ["x.amd64_linux26", "x.linux", "x.@sys"]);
}

#[test]
fn snapshots_are_found_in_the_root_of_a_volume_alone() {
    let (names, _) = names(0);
    assert!(names.is_snapshots_name(Key::new(CellIndex(0), Fid::root(VolumeId(1))), b".snapshots"));
    assert!(
        !names.is_snapshots_name(key(3), b".snapshots") && !names.is_snapshots_name(key(1), b"snapshots")
    );
}

#[test]
fn new_contents_return_the_objects_that_lost_their_name() {
    let (names, vnodes) = names(u64::MAX);
    let dir = vnodes.get_or_make(key(1)).0;
    let directories = names.directories();
    let first = blob(dir.key, &[("a", 2), ("b", 4), ("c", 6)]);
    assert!(directories.keep(&dir, DataVersion(1), first).is_empty());
    let second = blob(dir.key, &[("renamed", 2), ("c", 6), ("d", 8)]);
    assert_eq!(directories.keep(&dir, DataVersion(2), second), [key(4)]);
    let mut gone = directories.take(&dir);
    gone.sort();
    assert_eq!(gone, [key(2), key(6), key(8)]);
    assert_eq!(has(&dir, "c"), None);
}

#[test]
fn a_local_change_is_applied_to_a_directory_if_it_was_the_only_one() {
    let (names, vnodes) = names(u64::MAX);
    let dir = vnodes.get_or_make(key(1)).0;
    let directories = names.directories();
    let add = |blob: &mut Blob| dir::insert(blob, b"new", (VnodeId(2), Uniquifier(1))).is_ok();
    directories.keep(&dir, DataVersion(1), blob(dir.key, &[]));
    directories.patch(&dir, DataVersion(2), add);
    assert_eq!(has(&dir, "new"), Some(true));
    directories.patch(&dir, DataVersion(4), |blob| dir::remove(blob, b"new").is_ok());
    assert_eq!(has(&dir, "new"), None);
    directories.keep(&dir, DataVersion(4), blob(dir.key, &[]));
    directories.patch(&dir, DataVersion(5), |blob| dir::remove(blob, b"new").is_ok());
    assert_eq!(has(&dir, "new"), None);
}

#[test]
fn the_bytes_of_directories_are_bounded_and_the_oldest_go_first() {
    let one = blob(key(1), &[]).as_bytes().len() as u64;
    let (names, vnodes) = names(3 * one);
    let dirs: Vec<_> = (0..5).map(|n| vnodes.get_or_make(key(2 * n + 1)).0).collect();
    for dir in &dirs {
        names.directories().keep(dir, DataVersion(1), blob(dir.key, &[]));
    }
    let kept: Vec<bool> = dirs.iter().map(|dir| has(dir, "x").is_some()).collect();
    assert_eq!(kept, [false, false, true, true, true]);
}

#[test]
fn a_new_directory_is_kept_only_as_the_server_made_it() {
    let (names, vnodes) = names(u64::MAX);
    let dir = vnodes.get_or_make(key(3)).0;
    let length = blob(dir.key, &[]).as_bytes().len() as u64;
    let status = Status { length: length + 1, mode: Mode(0o755), ..Status::default() };
    names.directories().keep_new(&dir, key(1).fid, &status);
    assert_eq!(has(&dir, ".."), None);
    names.directories().keep_new(&dir, key(1).fid, &Status { length, ..status });
    assert_eq!(has(&dir, ".."), Some(true));
}

#[test]
fn snapshots_with_a_name_are_listed_in_the_order_in_which_they_were_made() {
    let snapshot = |volume, name: &str| Snapshot {
        volume: VolumeId(volume),
        name: afs_wire::xdr::ByteString::new(name).unwrap(),
        created: UnixSeconds(5),
    };
    let tidied = usable_snapshots(vec![
        snapshot(9, "later"),
        snapshot(5, "first"),
        snapshot(5, "again"),
        snapshot(0, "none"),
        snapshot(6, ".."),
        snapshot(7, "a/b"),
    ]);
    let list = |offset, max| {
        let dots = (NodeId(40), NodeId(41));
        let entries = list_snapshots(&tidied, dots, |volume| NodeId(u64::from(volume.0)), offset, max);
        let shown = |entry: &crate::api::DirEntry| {
            format!("{} {}", String::from_utf8_lossy(&entry.name), entry.ino.0)
        };
        (entries.iter().map(shown).collect::<Vec<_>>(), entries.last().map(|entry| entry.next_offset))
    };
    assert_eq!(list(0, 9).0, [". 40", ".. 41", "first 5", "later 9"]);
    let (some, next) = list(0, 3);
    assert_eq!(some, [". 40", ".. 41", "first 5"]);
    assert_eq!(list(next.unwrap(), 9).0, ["later 9"]);
}
