//! Channels without bound in the crates of the product: each is listed here with what bounds it (`docs/bounds.md`).

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

/// What makes a channel without bound.
const MADE_BY: [&str; 5] = [
    "unbounded_channel",
    "mpsc::channel",
    "mpsc::{Sender, channel}",
    "channel::unbounded",
    "flume::unbounded",
];

/// Crates for tests and measurements.
const NOT_THE_PRODUCT: [&str; 3] = ["afs-lab", "afs-sim", "afs-testkit"];

/// The files with one, and what bounds it.
const ALLOWED: [(&str, &str); 5] = [
    ("afs-cell/src/mount/cell_name.rs", "one reply of each server that the options name"),
    ("afs-fuse/src/mount.rs", "one message: the end of the mount"),
    ("afs-net/src/threads.rs", "one message of each thread that is started, a fixed number"),
    ("andrew/src/commands/run_with_token.rs", "one message: the number of the command's process"),
    ("andrew/src/commands/server_order.rs", "one reply of each server that the options name"),
];

#[test]
fn every_channel_without_bound_has_a_reason() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates");
    let mut found: Vec<String> = Vec::new();
    for entry in fs::read_dir(&crates).unwrap() {
        let package = entry.unwrap().path();
        if !NOT_THE_PRODUCT.iter().any(|name| package.ends_with(name)) {
            collect(&package.join("src"), &crates, &mut found);
        }
    }
    found.sort();
    let allowed: Vec<&str> = ALLOWED.iter().map(|(file, _)| *file).collect();
    assert_eq!(found, allowed, "a channel without bound came or went: bound it, or say here what bounds it");
}

/// The files below a folder that make such a channel outside of their tests.
fn collect(folder: &Path, top: &Path, found: &mut Vec<String>) {
    let entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    for path in entries {
        if path.is_dir() {
            collect(&path, top, found);
        } else if path.extension().is_some_and(|end| end == "rs") && makes_one(&path) {
            found.push(path.strip_prefix(top).unwrap().to_str().unwrap().to_owned());
        }
    }
}

fn makes_one(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    MADE_BY.iter().any(|made_by| code.contains(made_by))
}
