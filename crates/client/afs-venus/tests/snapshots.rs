//! Snapshots of a volume, found in its root.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_venus::{Kind, NodeId, OpenFlags, SetAttr};
use afs_wire::error::AbortCode;
use afs_wire::ids::{Mode, UnixSeconds, VolumeId};
use afs_wire::vl::SiteFlags;
use afs_wire::vol::Snapshot;
use afs_wire::xdr::ByteString;
use common::fakes::{Fakes, Image, RO, RW, Shared};

const MASTER: SiteFlags = SiteFlags::RW_VOLUME;

fn shared(image: &Image) -> Shared {
    Arc::new(Mutex::new(image.clone()))
}

fn snapshot(name: &str, volume: u32, created: u32) -> Snapshot {
    let name = ByteString::new(name.as_bytes().to_vec()).unwrap();
    Snapshot { name, volume: VolumeId(volume), created: UnixSeconds(created) }
}

/// A volume with two snapshots: one has a location entry, the other is known to its server alone.
fn cell(seed: u64) -> Fakes {
    let cell = Fakes::new(seed, 2, 1);
    let now = Image::new(300).with("file", b"of today").with("new", b"only today");
    let server = &cell.servers[0];
    server.host(RW, &shared(&now), true);
    server.host(VolumeId(2000), &shared(&Image::new(100).with("file", b"of monday")), false);
    server.host(VolumeId(2001), &shared(&Image::new(200).with("file", b"of tuesday")), false);
    server
        .set_snapshots(Some(vec![snapshot("tuesday", 2001, 2_000_200), snapshot("monday", 2000, 2_000_100)]));
    cell.locate(&[(0, MASTER)]);
    cell.locate_alone("proj.tuesday", VolumeId(2001), 0);
    cell
}

#[test]
fn snapshots_are_found_in_the_root_and_not_listed_there() {
    let cell = cell(1);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        assert_eq!(one.names("").await.unwrap(), [".", "..", "file", "new"]);
        assert_eq!(one.names(".snapshots").await.unwrap(), [".", "..", "monday", "tuesday"]);
        assert_eq!(one.get(".snapshots/monday/file").await.unwrap(), b"of monday");
        assert_eq!(one.get(".snapshots/tuesday/file").await.unwrap(), b"of tuesday");
        assert_eq!(one.get("file").await.unwrap(), b"of today");
        assert_eq!(one.find(".snapshots/monday/new").await.unwrap_err().errno(), 2);
        assert_eq!(one.find(".snapshots/sunday").await.unwrap_err().errno(), 2);
    });
}

#[test]
fn a_snapshot_shows_when_it_was_made_and_has_numbers_of_its_own() {
    let cell = cell(2);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        let top = one.find(".snapshots").await.unwrap().attr;
        assert_eq!(
            (top.kind, top.mode.0, top.nlink, top.mtime.seconds().0),
            (Kind::Directory, 0o555, 4, 2_000_200)
        );
        let monday = one.find(".snapshots/monday").await.unwrap();
        assert_eq!((monday.attr.kind, monday.attr.mtime.seconds().0), (Kind::Directory, 2_000_100));
        assert_eq!(one.venus.getattr(monday.node).await.unwrap().mtime.seconds().0, 2_000_100);
        let mut numbers = Vec::new();
        for path in
            ["", ".snapshots", ".snapshots/monday", ".snapshots/tuesday", "file", ".snapshots/monday/file"]
        {
            numbers.push(one.venus.walk(path.as_bytes(), true).await.unwrap().node);
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 6);
        let up = one.venus.lookup(monday.node, b"..").await.unwrap();
        assert_eq!(up.node, top.node);
        assert_eq!(one.venus.lookup(up.node, b"..").await.unwrap().node, NodeId::ROOT);
        assert_eq!(one.venus.lookup(up.node, b".").await.unwrap().node, top.node);
    });
}

#[test]
fn a_new_snapshot_is_there_a_second_later_and_a_removed_one_is_not() {
    let cell = cell(4);
    let a = cell.client(1);
    let one = a.clone();
    let server = cell.servers[0].clone();
    cell.on(&a, async move {
        let before = one.venus.invalidations();
        assert_eq!(one.find(".snapshots/wednesday").await.unwrap_err().errno(), 2);
        assert!(one.venus.invalidations() > before, "nobody may keep that there is none");
        server.host(VolumeId(2002), &shared(&Image::new(250).with("file", b"of wednesday")), false);
        server.set_snapshots(Some(vec![
            snapshot("wednesday", 2002, 2_000_300),
            snapshot("tuesday", 2001, 2_000_200),
        ]));
        one.env.sleep(Duration::from_millis(1100)).await;
        assert_eq!(one.get(".snapshots/wednesday/file").await.unwrap(), b"of wednesday");
        assert_eq!(one.find(".snapshots/monday").await.unwrap_err().errno(), 2);
        assert_eq!(one.names(".snapshots").await.unwrap(), [".", "..", "tuesday", "wednesday"]);
        // The same name again, of another day.
        server.host(VolumeId(2003), &shared(&Image::new(260).with("file", b"of the next wednesday")), false);
        server.set_snapshots(Some(vec![snapshot("wednesday", 2003, 2_000_400)]));
        one.env.sleep(Duration::from_millis(1100)).await;
        assert_eq!(one.get(".snapshots/wednesday/file").await.unwrap(), b"of the next wednesday");
    });
}

/// A change of the root invalidates the list.
#[test]
fn a_broken_promise_on_the_root_has_the_list_asked_for_again() {
    let cell = cell(5);
    let (a, b) = (cell.client(1), cell.client(2));
    let (one, two) = (a.clone(), b.clone());
    cell.on(&a, async move { one.names(".snapshots").await.map(drop).unwrap() });
    cell.servers[0].set_snapshots(Some(vec![snapshot("tuesday", 2001, 2_000_200)]));
    cell.on(&b, async move { two.put("made", b"x").await.unwrap() });
    let one = a.clone();
    cell.on(&a, async move {
        assert_eq!(one.names(".snapshots").await.unwrap(), [".", "..", "tuesday"]);
    });
}

#[test]
fn a_server_that_knows_no_snapshots_has_none() {
    let cell = cell(6);
    cell.servers[0].set_snapshots(None);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        assert_eq!(one.find(".snapshots").await.unwrap_err().errno(), 2);
        assert_eq!(one.find("file/.snapshots").await.unwrap_err().errno(), 20);
        assert_eq!(one.get("file").await.unwrap(), b"of today");
    });
}

#[test]
fn a_read_only_volume_shows_the_snapshots_beside_the_read_write_one() {
    let cell = cell(7);
    cell.servers[1].host(RO, &shared(&Image::new(290).with("file", b"as released")), false);
    cell.locate(&[(0, MASTER), (1, SiteFlags::RO_VOLUME)]);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        assert_eq!(one.get("file").await.unwrap(), b"as released");
        assert_eq!(one.get(".snapshots/monday/file").await.unwrap(), b"of monday");
    });
}

#[test]
fn no_file_of_a_snapshot_can_be_changed() {
    let cell = cell(10);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        let venus = &one.venus;
        let [shown, monday, file] = [".snapshots", ".snapshots/monday", ".snapshots/monday/file"];
        let node = async |path: &str| one.find(path).await.unwrap().node;
        let (file_node, today) = (node(file).await, node("file").await);
        for path in [shown, monday] {
            let dir = node(path).await;
            let name = if path == shown { &b"monday"[..] } else { b"file" };
            let outcomes = [
                ("create", venus.create(dir, b"new", 0o644, OpenFlags::WRITE).await.map(drop)),
                ("mknod", venus.mknod(dir, b"new", 0o644).await.map(drop)),
                ("mkdir", venus.mkdir(dir, b"new", 0o755).await.map(drop)),
                ("symlink", venus.symlink(dir, b"new", b"text").await.map(drop)),
                ("unlink", venus.unlink(dir, name).await),
                ("rmdir", venus.rmdir(dir, name).await),
                ("rename", venus.rename(dir, name, dir, b"new").await),
                ("rename out", venus.rename(dir, name, NodeId::ROOT, b"out").await),
                ("rename into", venus.rename(NodeId::ROOT, b"file", dir, b"new").await),
                ("chmod", venus.setattr(dir, None, mode(0o700)).await.map(drop)),
            ];
            for (what, outcome) in outcomes {
                let refused = outcome.err().map(|error| error.errno());
                // Renames from one volume to another fail anyway.
                let expected = if what.starts_with("rename ") { [30, 18] } else { [30; 2] };
                assert!(refused.is_some_and(|errno| expected.contains(&errno)), "{what} {path}: {refused:?}");
            }
        }
        let cut = SetAttr { size: Some(0), ..SetAttr::default() };
        for attr in [cut, mode(0o600)] {
            assert_eq!(venus.setattr(file_node, None, attr).await.unwrap_err().errno(), 30);
        }
        assert_eq!(one.open(file, OpenFlags::WRITE).await.unwrap_err().errno(), 30);
        assert_eq!(one.get(file).await.unwrap(), b"of monday");
        assert_eq!(one.names(monday).await.unwrap(), [".", "..", "file"]);
        assert_eq!(node("file").await, today);
    });
}

fn mode(mode: u32) -> SetAttr {
    SetAttr { mode: Some(Mode(mode)), ..SetAttr::default() }
}

#[test]
fn a_real_entry_of_that_name_hides_the_snapshots() {
    let cell = cell(8);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        let dir = NodeId::ROOT;
        one.venus.mknod(dir, b".snapshots", 0o644).await.unwrap();
        assert_eq!(one.find(".snapshots").await.unwrap().attr.kind, Kind::File);
    });
}

#[test]
fn snapshots_that_are_gone_are_no_device() {
    let cell = cell(9);
    let a = cell.client(1);
    let one = a.clone();
    let server = cell.servers[0].clone();
    cell.on(&a, async move {
        let monday = one.find(".snapshots/monday").await.unwrap().node;
        server.refuse(VolumeId(2000), Some(AbortCode::VNOVOL));
        let failed = one.venus.lookup(monday, b"file").await.unwrap_err();
        assert_eq!(failed.errno(), 19, "{failed}");
    });
}
