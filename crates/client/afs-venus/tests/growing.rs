//! Files that are open on one machine while another appends to them, cuts or rewrites them: through a kernel with pages of its own, and
//! through one that reads the cache file itself. No byte is read that nobody wrote, and all bytes of a length are there.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_venus::{DiskCache, HandleId, MemoryCache, NodeId, OpenFlags};
use bytes::Bytes;
use common::{Cell, Client, PROJ, pattern};

const ALICE: u32 = 1001;
const BOB: u32 = 1002;
const PAGE: u64 = 4096;
const FILE: &str = "home/log";
const THROUGH: OpenFlags = OpenFlags { passthrough: true, ..OpenFlags::READ };
const APPEND: OpenFlags = OpenFlags { append: true, ..OpenFlags::READ_WRITE };

/// Alice's machine and Bob's, and a volume of Alice's, in which Bob may read and nobody else anything.
fn two_machines(cell: &Cell, bobs: Client) -> (Client, Client) {
    cell.users.add("alice", 11);
    cell.users.add("bob", 12);
    let alices = cell.client(1);
    let (here, there) = (alices.clone(), bobs.clone());
    cell.on(&alices, async move {
        here.log_in(ALICE, "alice").await;
        let alice = here.user(ALICE);
        alice.mount("home", &format!("#{PROJ}.")).await.unwrap();
        alice.set_acl("home", &[("alice", "rlidwka"), ("bob", "rl")]).await.unwrap();
    });
    cell.on(&bobs, async move { there.log_in(BOB, "bob").await });
    (alices.user(ALICE), bobs.user(BOB))
}

fn in_memory(cell: &Cell) -> (Client, Client) {
    two_machines(cell, cell.client_with(2, Arc::new(MemoryCache::new(64 << 20))))
}

async fn append(alice: &Client, bytes: &[u8]) {
    let handle = alice.open(FILE, APPEND).await.unwrap();
    alice.venus.write(handle, 0, Bytes::copy_from_slice(bytes)).await.unwrap();
    alice.venus.flush(handle, 0).await.unwrap();
    alice.venus.release(handle).await.unwrap();
}

/// Bytes without NULs.
fn text(len: usize, seed: u64) -> Vec<u8> {
    pattern(len, seed).into_iter().map(|byte| byte | 1).collect()
}

/// What a kernel holds of an inode that is open by one handle: the length, and pages. Pages are dropped late, but before a length is told.
struct Kernel {
    client: Client,
    node: NodeId,
    handle: HandleId,
    length: Option<u64>,
    pages: BTreeMap<u64, Vec<u8>>,
    is_stale: bool,
}

impl Kernel {
    async fn open(client: &Client) -> Kernel {
        let node = client.find(FILE).await.unwrap().node;
        let handle = client.venus.open(node, OpenFlags::READ).await.unwrap().handle;
        let (pages, client) = (BTreeMap::new(), client.clone());
        Kernel { client, node, handle, length: None, pages, is_stale: false }
    }

    fn hear(&mut self) {
        let (attributes, data) = (format!("attributes {:x}", self.node.0), format!("data {:x}", self.node.0));
        for told in self.client.invalidated.take() {
            if told == attributes {
                self.length = None;
            }
            self.is_stale |= told == data;
        }
    }

    async fn fstat(&mut self) -> u64 {
        self.hear();
        if let Some(length) = self.length {
            return length;
        }
        let open = self.client.venus.getattr_open(self.node, self.handle).await.unwrap();
        self.hear();
        if std::mem::take(&mut self.is_stale) {
            self.pages.clear();
        }
        self.length = (!open.attr.is_older).then_some(open.attr.size);
        open.attr.size
    }

    /// All bytes of the length, page by page: what is missing of a page is zeros.
    async fn mapping(&mut self) -> Vec<u8> {
        let length = self.fstat().await;
        let mut bytes = Vec::new();
        for page in 0..length.div_ceil(PAGE) {
            if !self.pages.contains_key(&page) {
                let read = self.client.venus.read(self.handle, page * PAGE, PAGE as usize).await.unwrap();
                let mut read = read.to_vec();
                read.resize(PAGE as usize, 0);
                self.pages.insert(page, read);
            }
            bytes.extend_from_slice(&self.pages[&page]);
        }
        bytes.truncate(length as usize);
        bytes
    }

    async fn close(self) {
        self.client.venus.release(self.handle).await.unwrap();
    }
}

#[test]
fn an_open_file_grows_with_what_another_machine_appends() {
    let cell = Cell::new(1);
    let (alice, bob) = in_memory(&cell);
    let (one, two) = (alice.clone(), bob.clone());
    cell.on(&alice, async move { one.put(FILE, &text(5000, 1)).await.unwrap() });
    let mut kernel = cell.on(&bob, async move {
        let mut kernel = Kernel::open(&two).await;
        assert_eq!(kernel.mapping().await, text(5000, 1));
        kernel
    });
    let one = alice.clone();
    cell.on(&alice, async move { append(&one, &text(50_000, 2)).await });
    cell.on(&bob, async move {
        assert_eq!(kernel.fstat().await, 55_000);
        let bytes = kernel.mapping().await;
        assert_eq!((&bytes[..5000], &bytes[5000..]), (&text(5000, 1)[..], &text(50_000, 2)[..]));
        kernel.close().await;
    });
}

#[test]
fn a_kernel_that_reads_the_cache_file_itself_gets_what_is_appended_without_asking() {
    let (cell, dir) = (Cell::new(2), tempfile::tempdir().unwrap());
    let cache = Arc::new(DiskCache::open(dir.path(), 64 << 20, "this boot").unwrap());
    let (alice, bob) = two_machines(&cell, cell.client_with(2, cache));
    let (one, two) = (alice.clone(), bob.clone());
    cell.on(&alice, async move { one.put(FILE, b"").await.unwrap() });
    let (node, opened) = cell.on(&bob, async move {
        let node = two.find(FILE).await.unwrap().node;
        (node, two.venus.open(node, THROUGH).await.unwrap())
    });
    let backing = opened.backing.unwrap().file;
    let mut all = Vec::new();
    for round in 0..5 {
        let (one, line) = (alice.clone(), text(3000, round));
        all.extend_from_slice(&line);
        cell.on(&alice, async move { append(&one, &line).await });
        // No request of Bob's kernel comes.
        cell.sim.run_for(Duration::from_secs(1));
        let mut bytes = vec![0; all.len() + 1];
        assert_eq!(backing.read_at(&mut bytes, 0).unwrap(), all.len(), "round {round}");
        assert_eq!(bytes[..all.len()], all);
        let two = bob.clone();
        let seen = cell.on(&bob, async move { two.venus.getattr_open(node, opened.handle).await.unwrap() });
        assert_eq!((seen.attr.size, seen.is_current), (all.len() as u64, true));
    }
    // Also when its promise has ended by itself, with nobody to tell.
    cell.sim.run_for(Duration::from_secs(4 * 3600));
    let one = alice.clone();
    cell.on(&alice, async move { append(&one, b"end").await });
    cell.sim.run_for(Duration::from_secs(1));
    assert_eq!(backing.metadata().unwrap().len(), all.len() as u64 + 3);
}

#[test]
fn an_open_file_that_is_rewritten_elsewhere_keeps_length_times_and_bytes_of_its_version() {
    let cell = Cell::new(3);
    for (round, new) in [text(9000, 7), text(100, 8), Vec::new()].into_iter().enumerate() {
        let cell = if round == 0 { &cell } else { &Cell::new(3 + round as u64) };
        let (alice, bob) = in_memory(cell);
        let (one, two) = (alice.clone(), bob.clone());
        cell.on(&alice, async move { one.put(FILE, &text(5000, 1)).await.unwrap() });
        let (mut kernel, before, dir) = cell.on(&bob, async move {
            let mut kernel = Kernel::open(&two).await;
            kernel.mapping().await;
            let before = two.venus.getattr_open(kernel.node, kernel.handle).await.unwrap().attr;
            (kernel, before, two.find("home").await.unwrap().node)
        });
        cell.sim.run_for(Duration::from_secs(5));
        bob.invalidated.take();
        let (one, wanted) = (alice.clone(), new.clone());
        cell.on(&alice, async move { one.put(FILE, &wanted).await.unwrap() });
        let node = kernel.node;
        let told = bob.invalidated.take();
        assert!(
            told.contains(&format!("entry {:x} log", dir.0)),
            "its name leads to another inode: {told:?}"
        );
        kernel.length = None;
        let two = bob.clone();
        cell.on(&bob, async move {
            assert_eq!(kernel.mapping().await, text(5000, 1), "round {round}");
            let seen = two.venus.getattr_open(node, kernel.handle).await.unwrap();
            let times = |attr: &afs_venus::Attr| (attr.size, attr.mtime, attr.ctime, attr.data_version);
            assert_eq!((times(&seen.attr), seen.is_current), (times(&before), false));
            let newest = two.find(FILE).await.unwrap().attr;
            assert_eq!((newest.size, newest.is_older), (new.len() as u64, false));
            assert!(newest.mtime > before.mtime);
            assert_eq!(two.get(FILE).await.unwrap(), new);
            assert_eq!(kernel.mapping().await, text(5000, 1));
            kernel.close().await;
        });
    }
}

/// Who opens the file on the machine of a writer gets the writer's data, and so its length.
#[test]
fn the_length_of_a_file_with_a_writer_here_is_that_of_the_writers_data() {
    let cell = Cell::new(8);
    let (alice, bob) = in_memory(&cell);
    let (one, two) = (alice.clone(), bob.clone());
    cell.on(&alice, async move {
        one.put(FILE, b"old").await.unwrap();
        one.set_acl("home", &[("alice", "rlidwka"), ("bob", "rlw")]).await.unwrap();
    });
    let writer = cell.on(&bob, async move { two.open(FILE, OpenFlags::READ_WRITE).await.unwrap() });
    let one = alice.clone();
    cell.on(&alice, async move { append(&one, b" and new").await });
    let two = bob.clone();
    cell.on(&bob, async move {
        let seen = two.find(FILE).await.unwrap().attr;
        assert_eq!((seen.size, seen.is_older), (3, true));
        assert_eq!(two.get(FILE).await.unwrap(), b"old");
        two.venus.release(writer).await.unwrap();
        let seen = two.find(FILE).await.unwrap().attr;
        assert_eq!((seen.size, seen.is_older), (11, false));
        assert_eq!(two.get(FILE).await.unwrap(), b"old and new");
    });
}

/// A file of which not all was here at the open.
#[test]
fn a_large_file_goes_on_with_what_another_machine_appends() {
    let cell = Cell::new(9);
    cell.set_limits(|limits| limits.chunk_bytes = 8192);
    let (alice, bob) = in_memory(&cell);
    let (one, two) = (alice.clone(), bob.clone());
    cell.on(&alice, async move { one.put(FILE, &text(50_000, 1)).await.unwrap() });
    let mut kernel = cell.on(&bob, async move {
        let mut kernel = Kernel::open(&two).await;
        two.venus.read(kernel.handle, 48_000, 4096).await.unwrap();
        kernel.fstat().await;
        kernel
    });
    let mut all = text(50_000, 1);
    for round in 0..4 {
        let (one, line) = (alice.clone(), text(3000, 10 + round));
        all.extend_from_slice(&line);
        cell.on(&alice, async move { append(&one, &line).await });
        let wanted = all.clone();
        kernel = cell.on(&bob, async move {
            assert_eq!(kernel.mapping().await, wanted, "round {round}");
            kernel
        });
    }
}

/// One that appends, cuts and rewrites; each version is told before it is closed.
async fn write_versions(alice: Client, seed: u64, versions: Arc<Mutex<Vec<Vec<u8>>>>) {
    let mut content = versions.lock().unwrap()[0].clone();
    for round in 0..24 {
        let dice = pattern(4, seed * 100 + round);
        let added = text(1 + dice[1] as usize * 40, seed * 1000 + round);
        let rewrites = dice[0] >= 180;
        content = if rewrites { added.clone() } else { [&content[..], &added].concat() };
        versions.lock().unwrap().push(content.clone());
        match rewrites {
            true => alice.put(FILE, &content).await.unwrap(),
            false => append(&alice, &added).await,
        }
        alice.env.sleep(Duration::from_millis(u64::from(dice[2]))).await;
    }
}

/// Readers of every moment, of which each sees whole versions alone.
#[test]
fn readers_of_a_file_that_grows_and_is_rewritten_see_whole_versions_and_no_other_byte() {
    for seed in 0..12 {
        let (cell, dir) = (Cell::new(seed), tempfile::tempdir().unwrap());
        let cache = Arc::new(DiskCache::open(dir.path(), 64 << 20, "this boot").unwrap());
        let (alice, bob) = two_machines(&cell, cell.client_with(2, cache));
        let versions = Arc::new(Mutex::new(vec![text(5000, seed)]));
        let (one, first) = (alice.clone(), versions.lock().unwrap()[0].clone());
        cell.on(&alice, async move { one.put(FILE, &first).await.unwrap() });
        alice.env.spawn(Box::pin(write_versions(alice.clone(), seed, versions.clone())));
        let two = bob.clone();
        cell.on(&bob, async move {
            let is_version = |bytes: &[u8]| versions.lock().unwrap().iter().any(|version| version == bytes);
            for round in 0..40 {
                let mut pages = Kernel::open(&two).await;
                let through = two.venus.open(pages.node, THROUGH).await.unwrap();
                for look in 0..8 {
                    let bytes = pages.mapping().await;
                    assert!(
                        is_version(&bytes),
                        "{} bytes in look {look} of round {round}, seed {seed}",
                        bytes.len()
                    );
                    let seen = two.venus.getattr_open(pages.node, through.handle).await.unwrap().attr;
                    let mut mapped = vec![0; seen.size as usize];
                    let file = &through.backing.as_ref().unwrap().file;
                    file.read_exact_at(&mut mapped, 0).unwrap();
                    assert!(
                        is_version(&mapped),
                        "{} mapped in look {look} of round {round}, seed {seed}",
                        mapped.len()
                    );
                    two.env.sleep(Duration::from_millis(20)).await;
                }
                two.venus.release(through.handle).await.unwrap();
                pages.close().await;
            }
            let all = versions.lock().unwrap().clone();
            assert_eq!((all.len(), two.get(FILE).await.unwrap() == all[24]), (25, true));
        });
    }
}

/// One that was all here at the open: what is there already is not fetched again.
#[test]
fn a_large_file_that_is_all_here_grows_by_what_is_appended_alone() {
    let (cell, dir) = (Cell::new(20), tempfile::tempdir().unwrap());
    cell.set_limits(|limits| limits.chunk_bytes = 8192);
    let cache = Arc::new(DiskCache::open(dir.path(), 64 << 20, "this boot").unwrap());
    let (alice, bob) = two_machines(&cell, cell.client_with(2, cache));
    let (one, two) = (alice.clone(), bob.clone());
    let mut all = text(200_000, 1);
    let first = all.clone();
    cell.on(&alice, async move { one.put(FILE, &first).await.unwrap() });
    let (node, opened) = cell.on(&bob, async move {
        two.get(FILE).await.unwrap();
        let node = two.find(FILE).await.unwrap().node;
        (node, two.venus.open(node, THROUGH).await.unwrap())
    });
    let backing = opened.backing.unwrap().file;
    let before = bob.venus.counters().bytes_fetched;
    for round in 0..4 {
        let (one, line) = (alice.clone(), text(3000, 10 + round));
        all.extend_from_slice(&line);
        cell.on(&alice, async move { append(&one, &line).await });
        cell.sim.run_for(Duration::from_secs(1));
        let mut bytes = vec![0; all.len() + 1];
        assert_eq!(backing.read_at(&mut bytes, 0).unwrap(), all.len(), "round {round}");
        assert_eq!(bytes[..all.len()], all);
    }
    assert_eq!(bob.venus.counters().bytes_fetched - before, 4 * 3000);
    // One that changes the beginning and appends is no growth.
    let (one, two) = (alice.clone(), bob.clone());
    cell.on(&alice, async move {
        let handle = one.open(FILE, OpenFlags::READ_WRITE).await.unwrap();
        one.venus.write(handle, 0, Bytes::from_static(b"head")).await.unwrap();
        one.venus.write(handle, 212_000, Bytes::from_static(b"tail")).await.unwrap();
        one.venus.flush(handle, 0).await.unwrap();
        one.venus.release(handle).await.unwrap();
    });
    cell.sim.run_for(Duration::from_secs(1));
    let mut bytes = vec![0; all.len() + 1];
    assert_eq!((backing.read_at(&mut bytes, 0).unwrap(), &bytes[..all.len()]), (all.len(), &all[..]));
    let seen = cell.on(&bob, async move { two.venus.getattr_open(node, opened.handle).await.unwrap() });
    assert_eq!((seen.attr.size, seen.is_current), (212_000, false));
}
