//! Damaged and hostile input, full disks, and processes killed at work: always a clear error, and no loss of
//! acknowledged changes.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod killed;
mod large;
mod names;
mod packets;
mod space;

use std::net::SocketAddrV4;
use std::path::Path;

use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use andrew_tests::live::cell::{Cell, command};
use andrew_tests::live::properties::property;
use andrew_tests::live::setup::Setup;

/// The FID of the object at a path.
fn fid(path: &Path) -> Fid {
    let text = property(path, "afs.fid");
    let mut numbers = text.split('.').map(|number| number.parse().unwrap());
    let mut next = || numbers.next().unwrap();
    Fid { volume: VolumeId(next()), vnode: VnodeId(next()), unique: Uniquifier(next()) }
}

/// Creates a folder in which all users have these rights.
fn folder_for_all(setup: &Setup, top: &Path, name: &str, rights: &str) -> std::path::PathBuf {
    let folder = top.join(name);
    std::fs::create_dir(&folder).unwrap();
    let shown = folder.to_string_lossy();
    let _ = command(setup.netns(), &["fs", "setacl", &shown, "system:anyuser", rights]);
    folder
}

/// No task of the process has panicked, and its output has not become large.
fn assert_calm(cell: &mut Cell) {
    assert!(!cell.process.is_over(), "it has ended:\n{}", cell.process.said());
    let said = cell.process.said();
    assert!(!said.contains("panicked"), "{said}");
    assert!(said.len() < 1 << 20, "it has said {} bytes, which begin: {:.2000}", said.len(), said);
}

fn shown(ports: &[SocketAddrV4]) -> String {
    ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
