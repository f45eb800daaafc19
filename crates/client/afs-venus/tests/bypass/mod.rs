//! Files that bypass the disk cache (CITI TR 01-3, section 5).

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

mod by_path;
use crate::common;
mod memory;
mod rules;
mod versions;

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_venus::{
    CacheStore, ErrorKind, HandleId, LockKind, LockRange, MemoryCache, NodeId, OpenFlags, SetAttr,
};
use afs_wire::ids::Mode;
use bytes::Bytes;
use common::{Cell, Client, VIDEO, pattern};

/// What is kept beside files: nothing of a file.
const LITTLE: u64 = 8 << 10;
const CHUNK: u64 = 64 << 10;
const CACHE: u64 = 4 << 20;

/// A cell with small chunks, a client that writes, and another one with its cache.
fn cell(seed: u64) -> (Cell, Client, Client, Arc<MemoryCache>) {
    with_clients(Cell::new(seed))
}

fn with_clients(cell: Cell) -> (Cell, Client, Client, Arc<MemoryCache>) {
    cell.set_limits(|limits| {
        limits.chunk_bytes = CHUNK;
        limits.read_ahead_chunks = 2;
        limits.bypass.stream_percent = Some(25);
        limits.bypass.window_bytes = 8 * CHUNK;
        limits.bypass.bytes_max = 32 * CHUNK;
    });
    let a = cell.client(1);
    let cache = Arc::new(MemoryCache::new(CACHE));
    let b = cell.client_with(2, cache.clone());
    (cell, a, b, cache)
}

fn put(cell: &Cell, a: &Client, path: &'static str, data: &[u8]) {
    let (one, data) = (a.clone(), data.to_vec());
    cell.on(a, async move { one.put(path, &data).await.unwrap() });
}

fn get(cell: &Cell, b: &Client, path: &'static str) -> Vec<u8> {
    let two = b.clone();
    cell.on(b, async move { two.get(path).await.unwrap() })
}

fn open(cell: &Cell, b: &Client, path: &'static str, flags: OpenFlags) -> HandleId {
    let two = b.clone();
    cell.on(b, async move { two.open(path, flags).await.unwrap() })
}

fn read(cell: &Cell, b: &Client, handle: HandleId, pos: u64, len: usize) -> Vec<u8> {
    try_read(cell, b, handle, pos, len).unwrap()
}

fn try_read(cell: &Cell, b: &Client, handle: HandleId, pos: u64, len: usize) -> afs_venus::Result<Vec<u8>> {
    let two = b.clone();
    cell.on(b, async move { two.venus.read(handle, pos, len).await.map(|bytes| bytes.to_vec()) })
}

/// Writes at the beginning of a file that is open for that.
fn write(cell: &Cell, b: &Client, handle: HandleId, data: &'static [u8]) {
    let two = b.clone();
    cell.on(b, async move {
        assert_eq!(two.venus.write(handle, 0, Bytes::from_static(data)).await.unwrap(), data.len())
    });
}

fn close(cell: &Cell, b: &Client, handle: HandleId) {
    let two = b.clone();
    cell.on(b, async move {
        two.venus.flush(handle, 0).await.unwrap();
        two.venus.release(handle).await.unwrap();
    });
}

/// Looked up by its name, as a kernel does.
async fn node(client: &Client, path: &str) -> NodeId {
    if path.is_empty() { NodeId::ROOT } else { client.find(path).await.unwrap().node }
}

/// What `afs.bypass` tells, and what it is set to.
fn told(cell: &Cell, b: &Client, path: &'static str) -> String {
    let two = b.clone();
    let value = cell.on(b, async move {
        let node = node(&two, path).await;
        two.venus.property(node, b"afs.bypass").await.unwrap()
    });
    String::from_utf8(value.to_vec()).unwrap()
}

fn request(cell: &Cell, b: &Client, path: &'static str, word: &'static str) -> afs_venus::Result<()> {
    let two = b.clone();
    cell.on(b, async move {
        let node = node(&two, path).await;
        two.venus.set_property(node, b"afs.bypass", word.as_bytes()).await
    })
}

/// How many bytes of a file go through the cache, and how many past it, when it is read.
fn ways(cell: &Cell, b: &Client, path: &'static str, data: &[u8]) -> (u64, u64) {
    let before = b.venus.counters();
    assert!(get(cell, b, path) == data, "{path}");
    cell.sim.run_for(Duration::from_secs(1));
    let after = b.venus.counters();
    let past = after.bytes_bypassed - before.bytes_bypassed;
    (after.bytes_fetched - before.bytes_fetched - past, past)
}
