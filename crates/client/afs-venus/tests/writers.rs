//! Several processes of one machine that use one file.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::sync::Arc;

use afs_rpc::future::join_all;
use afs_venus::{DiskCache, OpenFlags};
use bytes::Bytes;
use common::{Cell, Client};

/// Bytes that one process writes into the file: more than fit into one datagram.
const LEN: usize = 20_000;

/// A machine with a disk cache: its reads and writes take time, and others can come in between.
fn machine(cell: &Cell, number: u8, dir: &tempfile::TempDir) -> Client {
    cell.client_with(number, Arc::new(DiskCache::open(dir.path(), 64 << 20, "this boot").unwrap()))
}

/// Repeatedly opens with O_TRUNC, writes and closes.
async fn rewrite(client: Client, tag: u8, rounds: usize) -> Vec<String> {
    let mut errors = Vec::new();
    for _ in 0..rounds {
        errors.extend(client.put("file", &vec![tag; LEN]).await.err().map(|error| error.to_string()));
    }
    errors
}

/// Repeatedly opens for appending, writes one line and closes.
async fn append(client: Client, tag: u8, rounds: usize) -> Vec<String> {
    let mut errors = Vec::new();
    let flags = OpenFlags { append: true, ..OpenFlags::WRITE };
    for round in 0..rounds {
        let handle = client.open("file", flags).await.unwrap();
        let line = format!("{tag:02} {round:04}\n");
        client.venus.write(handle, 0, Bytes::from(line)).await.unwrap();
        errors.extend(client.venus.flush(handle, 0).await.err().map(|error| error.to_string()));
        client.venus.release(handle).await.unwrap();
    }
    errors
}

#[test]
fn processes_of_one_machine_that_rewrite_one_file_all_close_it_without_an_error() {
    for seed in 0..4 {
        let (cell, dir) = (Cell::new(seed), tempfile::tempdir().unwrap());
        let (a, b) = (machine(&cell, 1, &dir), cell.client(2));
        let one = a.clone();
        let errors = cell.on(&a, async move {
            one.put("file", b"").await.unwrap();
            join_all((0..4).map(|tag| rewrite(one.clone(), b'a' + tag, 30))).await.concat()
        });
        assert!(errors.is_empty(), "seed {seed}: {} of 120: {}", errors.len(), errors[0]);
        let two = b.clone();
        let data = cell.on(&b, async move { two.get("file").await.unwrap() });
        assert_eq!(data.len(), LEN, "seed {seed}");
    }
}

#[test]
fn processes_of_one_machine_that_append_to_one_file_all_close_it_without_an_error() {
    for seed in 0..4 {
        let (cell, dir) = (Cell::new(seed), tempfile::tempdir().unwrap());
        let (a, b) = (machine(&cell, 1, &dir), cell.client(2));
        let one = a.clone();
        let errors = cell.on(&a, async move {
            one.put("file", b"").await.unwrap();
            join_all((0..8).map(|tag| append(one.clone(), tag, 20))).await.concat()
        });
        assert!(errors.is_empty(), "seed {seed}: {} of 160: {}", errors.len(), errors[0]);
        let two = b.clone();
        let text = String::from_utf8(cell.on(&b, async move { two.get("file").await.unwrap() })).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 160, "seed {seed}");
    }
}
