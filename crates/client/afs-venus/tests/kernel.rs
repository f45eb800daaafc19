//! Files used by passthrough, while other machines store to them and fetches fail.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use afs_venus::{DiskCache, ErrorKind, LockKind, LockRange, OpenFlags};
use afs_wire::error::AbortCode;
use afs_wire::vl::SiteFlags;
use bytes::Bytes;
use common::Client;
use common::fakes::{Fakes, Image, RW, Shared};

/// Longer than any file here.
const ENOUGH: usize = 100;

/// A server with a file, and a machine with a disk cache.
fn cell(seed: u64, dir: &tempfile::TempDir) -> (Fakes, Shared, Client) {
    let cell = Fakes::new(seed, 1, 1);
    let image = Arc::new(Mutex::new(Image::new(100).with("file", b"0123456789")));
    cell.servers[0].host(RW, &image, true);
    cell.locate(&[(0, SiteFlags::RW_VOLUME)]);
    let a = cell.client_keeping(1, Arc::new(DiskCache::open(dir.path(), 16 << 20, "this boot").unwrap()));
    (cell, image, a)
}

fn bytes_of(file: &std::fs::File) -> Vec<u8> {
    let mut bytes = vec![0; ENOUGH];
    let length = file.read_at(&mut bytes, 0).unwrap();
    bytes.truncate(length);
    bytes
}

fn at_server(image: &Shared) -> Vec<u8> {
    let image = image.lock().unwrap();
    image.data(image.find(RW, b"file").unwrap(), 0, ENOUGH as u64).unwrap()
}

/// Another machine stores the whole file, and no break is sent.
fn store_elsewhere(image: &Shared, bytes: &[u8]) {
    let mut image = image.lock().unwrap();
    let file = image.find(RW, b"file").unwrap();
    image.store(file.vnode, 0, bytes, 0).unwrap();
}

#[test]
fn the_kernel_reads_the_stored_bytes_after_two_machines_stored_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (cell, image, a) = cell(1, &dir);
    let (one, theirs) = (a.clone(), image.clone());
    let file = cell.on(&a, async move {
        let node = one.find("file").await.unwrap().node;
        let reading = OpenFlags { passthrough: true, ..OpenFlags::READ };
        let file = one.venus.open(node, reading).await.unwrap().backing.unwrap().file;
        let handle = one.venus.open(node, OpenFlags::READ_WRITE).await.unwrap().handle;
        one.venus.write(handle, 3, Bytes::from_static(b"XY")).await.unwrap();
        store_elsewhere(&theirs, b"abcdefghijk");
        one.venus.flush(handle, 0).await.unwrap();
        file
    });
    assert_eq!(bytes_of(&file), b"012XY56789");
    assert_eq!(at_server(&image), bytes_of(&file), "the server has parts of both");
}

#[test]
fn a_half_fetched_version_is_not_stored_and_the_next_lock_fetches_it() {
    let dir = tempfile::tempdir().unwrap();
    let (cell, image, a) = cell(2, &dir);
    let (one, theirs, server) = (a.clone(), image.clone(), cell.servers[0].clone());
    cell.on(&a, async move {
        let node = one.find("file").await.unwrap().node;
        let direct = OpenFlags { passthrough: true, ..OpenFlags::READ_WRITE };
        let opened = one.venus.open(node, direct).await.unwrap();
        let (file, handle) = (opened.backing.unwrap().file, opened.handle);
        store_elsewhere(&theirs, b"abcdefghijk");
        let lock = || one.venus.lock(handle, 7, 1, LockRange::WHOLE, LockKind::Write, false);
        server.fail("FetchData", Some(AbortCode(13)));
        lock().await.unwrap_err();
        let refused = one.venus.fsync(handle).await.unwrap_err();
        assert_eq!((refused.kind, refused.errno()), (ErrorKind::Cache, 5), "{refused}");
        assert_eq!(at_server(&theirs), b"abcdefghijk");
        server.fail("FetchData", None);
        lock().await.unwrap();
        assert_eq!(bytes_of(&file), b"abcdefghijk", "who has the lock sees what was stored");
        file.write_all_at(b"-", 5).unwrap();
        one.venus.flush(handle, 7).await.unwrap();
        one.venus.release(handle).await.unwrap();
    });
    assert_eq!(at_server(&image), b"abcde-ghijk");
}
