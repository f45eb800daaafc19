//! Cost of the release of a file that the kernel has written by passthrough.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afs_venus::cache::{CacheFile, CacheKey, CacheStore, Kept, Ranges};
use afs_venus::{DiskCache, NodeId, OpenFlags};
use afs_wire::ids::{CellName, Fid};
use bytes::Bytes;
use common::Cell;

const PASSTHROUGH: OpenFlags = OpenFlags { passthrough: true, ..OpenFlags::READ_WRITE };

#[derive(Default)]
struct Counts {
    looked: AtomicU64,
    read: AtomicU64,
}

impl Counts {
    fn take(&self) -> (u64, u64) {
        (self.looked.swap(0, Ordering::SeqCst), self.read.swap(0, Ordering::SeqCst))
    }
}

/// A cache that counts operations on its files.
struct Counting(DiskCache, Arc<Counts>);

struct CountingFile(Arc<dyn CacheFile>, Arc<Counts>);

impl CacheStore for Counting {
    fn create(&self) -> io::Result<Arc<dyn CacheFile>> {
        Ok(Arc::new(CountingFile(self.0.create()?, self.1.clone())))
    }

    fn find(&self, key: &CacheKey) -> Option<(Arc<dyn CacheFile>, Kept)> {
        let (file, kept) = self.0.find(key)?;
        Some((Arc::new(CountingFile(file, self.1.clone())), kept))
    }

    fn may_have(&self, cell: &CellName, fid: Fid) -> bool {
        self.0.may_have(cell, fid)
    }

    fn keep(&self, key: &CacheKey, file: &Arc<dyn CacheFile>, kept: &Kept) -> io::Result<()> {
        self.0.keep(key, file, kept)
    }

    fn forget(&self, cell: &CellName, fid: Fid) {
        self.0.forget(cell, fid);
    }

    fn bytes_used(&self) -> u64 {
        self.0.bytes_used()
    }

    fn bytes_max(&self) -> u64 {
        self.0.bytes_max()
    }

    fn make_room(&self, wanted: u64) -> bool {
        self.0.make_room(wanted)
    }

    fn blocks(&self) -> bool {
        true
    }

    fn shut_down(&self) -> io::Result<()> {
        self.0.shut_down()
    }
}

impl CacheFile for CountingFile {
    fn id(&self) -> u64 {
        self.0.id()
    }

    fn read_at(&self, pos: u64, len: usize) -> io::Result<Bytes> {
        self.1.read.fetch_add(1, Ordering::SeqCst);
        self.0.read_at(pos, len)
    }

    fn write_at(&self, pos: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(pos, data)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn mark(&self) -> io::Result<()> {
        self.0.mark()
    }

    fn touched(&self) -> io::Result<bool> {
        self.1.looked.fetch_add(1, Ordering::SeqCst);
        self.0.touched()
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn data(&self) -> io::Result<Ranges> {
        self.0.data()
    }

    fn discard(&self, pos: u64, len: u64) -> io::Result<()> {
        self.0.discard(pos, len)
    }

    fn file(&self) -> Option<Arc<File>> {
        self.0.file()
    }
}

/// The data is read once more, because of mappings; the file's time is read once.
#[test]
fn kernel_writes_are_detected_once_at_close_and_once_at_release() {
    let dir = tempfile::tempdir().unwrap();
    let cell = Cell::new(11);
    let counts = Arc::new(Counts::default());
    let disk = DiskCache::open(dir.path(), 16 << 20, "this boot").unwrap();
    let client = cell.client_with(1, Arc::new(Counting(disk, counts.clone())));
    let one = client.clone();
    cell.on(&client, async move {
        let (_, opened) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
        opened.backing.clone().unwrap().file.write_all_at(&[7; 8192], 0).unwrap();
        counts.take();
        one.venus.flush(opened.handle, 0).await.unwrap();
        assert_eq!(counts.take(), (1, 1), "(looks, reads) at close");
        one.venus.release(opened.handle).await.unwrap();
        assert_eq!(counts.take(), (1, 1), "(looks, reads) at release");
    });
}
