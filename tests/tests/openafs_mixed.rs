//! Volumes are moved back and forth between OpenAFS's file servers and an Andrew one in the same cell, by OpenAFS's
//! `vos` and by Andrew's, with all their contents: a tree with a file of every type and a file of 100 MiB. Two clients,
//! OpenAFS's and Andrew's, use the volumes meanwhile.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use andrew_tests::live::dumps::{assert_alike, vnodes};
use andrew_tests::live::files::{BLOCK, Pattern};
use andrew_tests::live::manifest::{Manifest, assert_same, manifest, quota};
use andrew_tests::live::mixed::Mixed;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::tree::change;
use andrew_tests::live::wait::until_equal;

const NUMBER: u8 = 21;
const NEEDS: &[Need] = &[Need::Root, Need::Fuse, Need::OpenAfs];

#[test]
fn volumes_move_between_openafs_servers_and_ours_while_they_are_in_use() {
    if !all_there(NEEDS) {
        return;
    }
    let mixed = Mixed::new("openafs-mixed-moves", NUMBER);
    let (point, mut wanted) = mixed.volume_with_tree("v", "SRV1 a", 1600);
    let theirs = mixed.seen_by_theirs("v");
    let open = [&point, &theirs].map(|top| File::open(top.join("medium")).unwrap());
    for (round, (from, to, by_theirs)) in [
        ("SRV1 a", "OURS a", true),
        ("OURS a", "SRV2 a", true),
        ("SRV2 a", "OURS b", false),
        ("OURS b", "SRV1 b", false),
    ]
    .into_iter()
    .enumerate()
    {
        eprintln!("from {from} to {to}");
        if by_theirs {
            mixed.vos(&format!("move v {from} {to}"));
        } else {
            mixed.andrew_vos(&format!("move v {to}"));
        }
        assert_same(&format!("moved to {to}"), &wanted, &manifest(&point));
        assert_eq!(quota(&point).0, 1_000_000);
        change(&point, round as u64);
        for file in &open {
            goes_on(file);
        }
        let words = fs::read(point.join("small")).unwrap();
        until_equal("OpenAFS's client", &Ok(words), || {
            fs::read(theirs.join("small")).map_err(|error| error.to_string())
        });
        wanted = manifest(&point);
    }
    fs::write(theirs.join("small"), "from the other client").unwrap_err();
}

/// A file that was opened long ago still reads as the same file.
fn goes_on(file: &File) {
    let mut block = vec![0; BLOCK];
    for number in 0..9 {
        file.read_exact_at(&mut block, number * BLOCK as u64).unwrap();
        assert!(block == Pattern(1).block(number), "block {number} is another");
    }
}

#[test]
fn copies_replicas_and_dumps_are_alike_on_both_kinds_of_server() {
    if !all_there(NEEDS) {
        return;
    }
    let mixed = Mixed::new("openafs-mixed-copies", NUMBER);
    let there = mixed.volume_with_tree("there", "SRV1 a", 20);
    let here = mixed.volume_with_tree("here", "OURS a", 20);
    copies(&mixed, &there.1, &here.1);
    for (volume, (point, first)) in [("there", there), ("here", here)] {
        replicas(&mixed, volume, &point, &first);
    }
}

/// Copies and piped dumps, each way, by each tool.
fn copies(mixed: &Mixed, there: &Manifest, here: &Manifest) {
    mixed.vos("copy there SRV1 a there.c OURS b");
    mixed.vos("copy here OURS a here.c SRV2 a");
    mixed.andrew_vos("copy --id there --toname there.d --toserver OURS --topartition a");
    mixed.andrew_vos("copy --id here --toname here.d --toserver SRV1 --topartition b");
    let pipe = |from: &str, to: &str| {
        let line = mixed.line(&format!("vos dump {from} -localauth | vos restore {to} -localauth"));
        mixed.hosts().tool("cl1", &["bash", "-o", "pipefail", "-c", &line]);
    };
    pipe("there", "OURS a there.p");
    pipe("here", "SRV2 a here.p");
    for suffix in ["c", "d", "p"] {
        for (volume, wanted) in [("there", there), ("here", here)] {
            let name = format!("{volume}.{suffix}");
            let point = mixed.mounted(&name);
            assert_same(&name, wanted, &manifest(&point));
            assert_eq!(quota(&point).0, 1_000_000, "{name}");
        }
    }
}

/// Read-only copies on both kinds of server, released in full and incrementally, by each tool.
fn replicas(mixed: &Mixed, volume: &str, point: &Path, first: &Manifest) {
    for site in ["SRV1 a", "SRV2 a", "OURS a"] {
        mixed.vos(&format!("addsite {site} {volume}"));
    }
    mixed.vos(&format!("release {volume}"));
    let replica = mixed.mounted(&format!("{volume}.readonly"));
    assert_same(volume, first, &manifest(&replica));
    sites_are_alike(mixed, volume);
    for round in 0..2 {
        change(point, round);
        assert_ne!(manifest(point), manifest(&replica));
        if round == 0 {
            mixed.vos(&format!("release {volume}"));
        } else {
            mixed.andrew_vos(&format!("release {volume}"));
        }
        assert_same(volume, &manifest(point), &manifest(&replica));
        sites_are_alike(mixed, volume);
    }
}

/// The dumps of all sites are equal.
fn sites_are_alike(mixed: &Mixed, volume: &str) {
    let [first, second, ours] = ["SRV1", "SRV2", "OURS"].map(|site| {
        let file = mixed.folder().join("replica.dump");
        mixed.vos(&format!("dump {volume}.readonly -file {} -server {site} -partition a", file.display()));
        vnodes(&file)
    });
    assert_alike(&format!("{volume} on OpenAFS's servers"), &first, &second);
    assert_alike(&format!("{volume} there and on ours"), &first, &ours);
}
