//! Channels without bound in the crates of the product: each is listed here with what bounds it (`docs/bounds.md`).

use andrew_tests::sources::files_with;

/// What makes a channel without bound.
const MADE_BY: [&str; 5] = [
    "unbounded_channel",
    "mpsc::channel",
    "mpsc::{Sender, channel}",
    "channel::unbounded",
    "flume::unbounded",
];

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
    let found = files_with(&[], |code| MADE_BY.iter().any(|made_by| code.contains(made_by)));
    let allowed: Vec<&str> = ALLOWED.iter().map(|(file, _)| *file).collect();
    assert_eq!(found, allowed, "a channel without bound came or went: bound it, or say here what bounds it");
}
