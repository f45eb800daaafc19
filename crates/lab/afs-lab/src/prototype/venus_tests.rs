//! Tests of the prototype: checks of copies, stubs, processes and path names.
#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use super::super::call::{PATH_MAX, ServerNumber};
use super::super::cell::{Cell, InProcess, place};
use super::*;
use std::rc::Rc;

struct Run {
    directory: tempfile::TempDir,
    cell: Rc<Cell>,
}

impl Run {
    fn of(servers: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let cell = Cell::in_directory(directory.path(), servers);
        Self { directory, cell }
    }

    fn client(&self, number: u32) -> Venus<InProcess> {
        Venus::of(self.cell.client(number), &self.directory.path().join(format!("cache{number}"))).unwrap()
    }
}

fn put(venus: &mut Venus<InProcess>, path: &str, data: &str) {
    venus.store(path, &mut data.as_bytes()).unwrap();
}

fn read(venus: &mut Venus<InProcess>, path: &str) -> String {
    io::read_to_string(venus.open(path).unwrap()).unwrap()
}

#[test]
fn every_open_of_a_copy_asks_and_another_clients_store_is_seen() {
    let run = Run::of(1);
    let (mut one, mut other) = (run.client(1), run.client(2));
    put(&mut one, "file", "first");
    for _ in 0..3 {
        assert_eq!(read(&mut one, "file"), "first");
    }
    assert_eq!((run.cell.calls(0, "TestAuth"), run.cell.calls(0, "Fetch")), (3, 0));
    assert_eq!(read(&mut other, "file"), "first");
    put(&mut other, "file", "second, longer");
    assert_eq!(read(&mut one, "file"), "second, longer", "the copy was not valid");
    assert_eq!((run.cell.calls(0, "TestAuth"), run.cell.calls(0, "Fetch")), (4, 2));
    read(&mut one, "file");
    assert_eq!(run.cell.calls(0, "Fetch"), 2);
    assert_eq!(run.cell.processes(), 2, "a process for each client");
    assert_eq!(one.checks.calls, 5);
}

#[test]
fn a_status_is_asked_for_once_and_then_checked() {
    let run = Run::of(1);
    let (mut one, mut other) = (run.client(1), run.client(2));
    one.make_dir("dir").unwrap();
    put(&mut one, "dir/file", "data");
    other.status("dir/file").unwrap();
    other.status("dir/file").unwrap();
    assert_eq!((run.cell.calls(0, "GetFileStat"), run.cell.calls(0, "TestAuth")), (1, 1));
    one.set_status("dir/file").unwrap();
    other.status("dir/file").unwrap();
    assert_eq!((run.cell.calls(0, "GetFileStat"), run.cell.calls(0, "TestAuth")), (2, 2));
    one.open("dir/file").unwrap();
    assert_eq!(run.cell.calls(0, "Fetch"), 0, "one's own change leaves one's copy valid");
    // Two components at each of 7 calls, and one for the directory.
    assert_eq!(run.cell.take_work().components, 15);
    let refused = |path: &str, other: &mut Venus<_>| other.status(path).unwrap_err().why;
    assert!(matches!(refused("dir/absent", &mut other), Refusal::Absent));
    assert!(matches!(refused("dir/file/below", &mut other), Refusal::Kind));
    let said = other.open("dir").unwrap_err().to_string();
    assert!(said.starts_with("Fetch of 'dir' on the prototype: it is a directory"), "{said}");
}

#[test]
fn status_is_in_shadow_directories_that_no_name_reaches() {
    let run = Run::of(1);
    let mut one = run.client(1);
    one.make_dir("dir").unwrap();
    put(&mut one, "dir/file", "data");
    one.set_status("dir/file").unwrap();
    let root = run.directory.path().join("server0");
    assert_eq!(std::fs::read_to_string(root.join("dir/.admin/file")).unwrap(), "2");
    assert_eq!(std::fs::read_to_string(root.join("dir/file")).unwrap(), "data");
    assert_eq!(std::fs::read_dir(root.join("dir/.admin")).unwrap().count(), 1, "something was left behind");
    assert_eq!(one.list("").unwrap(), ["dir"]);
    std::fs::write(run.directory.path().join("outside"), "secret").unwrap();
    std::os::unix::fs::symlink("..", root.join("link")).unwrap();
    let long = "a/".repeat(PATH_MAX);
    for path in
        ["../outside", "dir/../../outside", "dir/.admin/file", "dir//file", "/dir", "dir/.", "a\0b", &long]
    {
        let why = one.open(path).unwrap_err().why;
        assert!(matches!(why, Refusal::Name | Refusal::Long), "{path}: {why}");
        assert!(one.list(path).is_err() && one.store(path, &mut "x".as_bytes()).is_err(), "{path}");
    }
    assert!(matches!(one.open("link/outside").unwrap_err().why, Refusal::Kind), "a link was followed");
}

#[test]
fn a_stub_points_to_the_server_and_the_prefix_is_kept() {
    let run = Run::of(2);
    let (mut operator, mut one) = (Routes::of(run.cell.client(0)), run.client(1));
    place(&mut operator, "usr", ServerNumber(1)).unwrap();
    put(&mut one, "usr/file", "1");
    assert_eq!((run.cell.calls(0, "Store"), run.cell.calls(1, "Store")), (1, 1));
    put(&mut one, "usr/file", "2");
    put(&mut one, "usrs", "3");
    assert_eq!(
        (run.cell.calls(0, "Store"), run.cell.calls(1, "Store")),
        (2, 2),
        "the prefix is a whole component"
    );
    assert_eq!(one.list("usr").unwrap(), ["file"]);
    // Stubs that point at each other end.
    let mut there = run.cell.client(0);
    there.call(ServerNumber(0), "a", Call::MakeStub(ServerNumber(1))).unwrap();
    there.call(ServerNumber(1), "a", Call::MakeStub(ServerNumber(0))).unwrap();
    assert!(matches!(one.open("a/b").unwrap_err().why, Refusal::Absent));
}
