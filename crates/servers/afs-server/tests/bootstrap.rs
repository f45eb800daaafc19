//! Bootstrap of a new cell, and of one that exists already.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use afs_wire::dir::Blob;
use afs_wire::ids::Fid;
use afs_wire::vl;
use rig::Cell;

#[test]
fn the_top_directory_mounts_the_cell_both_ways() {
    let cell = Cell::new(81);
    let client = cell.client(1);
    let top = Fid::root(cell.volumes.root_afs);
    let names = |cell: &Cell| names_in(&cell.client(9), top);
    assert_eq!(names(&cell), [".test.cell", "test.cell"]);
    let status = client.fetch_status(top).unwrap().status;
    assert_eq!(status.anonymous_access, "rl".parse().unwrap());
}

#[test]
fn doing_it_again_changes_nothing() {
    let mut cell = Cell::new(82);
    let client = cell.client(1);
    let top = Fid::root(cell.volumes.root_afs);
    let (volumes, before) = (cell.volumes, client.fetch_status(top).unwrap().status);
    for _ in 0..2 {
        cell.restart();
    }
    assert_eq!(cell.volumes, volumes);
    let client = cell.client(2);
    assert_eq!(client.fetch_status(top).unwrap().status.data_version, before.data_version);
    let attributes = vl::Attributes::default();
    assert_eq!(client.ask(vl::ListAttributesN { attributes }).unwrap().count, 2);
}

fn names_in(client: &rig::Client, dir: Fid) -> Vec<String> {
    let blob = Blob::from_bytes(client.read(dir)).unwrap();
    let mut names: Vec<String> =
        blob.entries(0).map(|entry| String::from_utf8_lossy(entry.name).into_owned()).collect();
    names.retain(|name| name != "." && name != "..");
    names.sort();
    names
}
