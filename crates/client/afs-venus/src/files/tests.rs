//! Tests of this part alone: no server and no Venus.

mod history;
mod model;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use afs_rpc::Parts;
use afs_wire::fs::{FileKind, Status};
use afs_wire::ids::{CellName, DataVersion, Fid, Uniquifier, VnodeId, VolumeId};
use parking_lot::Mutex;

use super::*;
use crate::api::{OpenFlags, TokenOwner};
use crate::cache::{CacheFile, CacheKey, Kept, MemoryCache};
use crate::error::ErrorKind;
use crate::key::CellIndex;
use crate::vnode::Vnode;

const LENGTH: u64 = 10;

fn name() -> CellName {
    CellName::new("test.cell").unwrap()
}

fn key(n: u32) -> Key {
    Key::new(CellIndex(0), Fid::new(VolumeId(1), VnodeId(2 * n), Uniquifier(1)))
}

fn status(version: u64, length: u64) -> Status {
    Status { kind: FileKind::File, data_version: DataVersion(version), length, ..Status::default() }
}

/// Result of a future that is ready at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match poll(pin!(future)) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits"),
    }
}

fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// The part, and a file with a known status.
fn machine() -> (Files, Arc<Vnode>) {
    machine_with(Parts::inline(), Arc::new(MemoryCache::new(1 << 20)))
}

fn machine_with(env: EnvRef, cache: Arc<dyn CacheStore>) -> (Files, Arc<Vnode>) {
    let vnodes = Arc::new(VnodeTable::new(100));
    let vnode = vnodes.get_or_make(key(1)).0;
    let cells = Arc::<CellNames>::default();
    cells.add(&name(), 1);
    (Files::new(env, cache, cells, vnodes), vnode)
}

fn open(files: &Files, vnode: &Arc<Vnode>, version: u64, flags: OpenFlags) -> Arc<Handle> {
    now(files.open_handle(vnode, &status(version, LENGTH), flags, None)).unwrap()
}

/// Records a version as fetched completely.
fn fetch(data: &FileData) {
    data.content().fetched(0..LENGTH, &crate::cache::Ranges::new());
}

fn release(files: &Files, handle: &Handle) {
    let data = handle.data();
    files.release_handle(handle.id).unwrap();
    now(files.retire(&handle.vnode, &data, None));
}

#[test]
fn a_handle_is_not_counted_on_data_retired_since_its_choice() {
    let (files, vnode) = machine();
    let first = open(&files, &vnode, 5, OpenFlags::READ);
    let chosen = now(files.current(&vnode, &status(5, LENGTH))).unwrap();
    assert!(Arc::ptr_eq(&chosen, &first.data()));
    release(&files, &first);
    assert!(
        files.count_handle(&vnode, &chosen, OpenFlags::READ_WRITE, None).is_none(),
        "it is none of the file's"
    );
    assert_eq!((vnode.state().file.opens(), chosen.content().uses.count(), files.handles().len()), (0, 0, 0));
    let second = open(&files, &vnode, 5, OpenFlags::READ_WRITE);
    assert!(is_current(&vnode.state(), &second.data()) && !Arc::ptr_eq(&second.data(), &chosen));
}

#[test]
fn a_handle_does_not_switch_to_data_retired_since_its_choice() {
    let (files, vnode) = machine();
    let old = open(&files, &vnode, 5, OpenFlags::READ);
    let other = open(&files, &vnode, 6, OpenFlags::READ);
    let chosen = now(files.current(&vnode, &status(6, LENGTH))).unwrap();
    release(&files, &other);
    assert!(!files.switch(&old, &chosen, || ()).unwrap());
    let newer = now(files.switch_to_current(&old, &status(6, LENGTH), || ())).unwrap();
    assert!(Arc::ptr_eq(&newer, &old.data()) && is_current(&vnode.state(), &newer));
    assert_eq!(newer.content().uses.count(), 1);
}

/// A reply is handled by a thread that may not wait for the disk: in this test I/O never completes.
#[test]
fn a_file_just_created_is_opened_without_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Arc::new(crate::cache::DiskCache::open(folder.path(), 1 << 20, "").unwrap());
    let jobs = Arc::new(Mutex::new(Vec::new()));
    let to = jobs.clone();
    let env = Parts::default().with_blocking(move |job| to.lock().push(job));
    let (files, vnode) = machine_with(env.shared(), cache);
    let mut preparing = pin!(files.prepare_spare());
    assert!(poll(preparing.as_mut()).is_pending());
    jobs.lock().drain(..).for_each(|job| job());
    now(preparing);
    let created = now(files.open_handle(&vnode, &status(1, 0), OpenFlags::READ_WRITE, None)).unwrap();
    assert_eq!((created.data().file.len().unwrap(), created.data().file.touched().unwrap()), (0, false));
    let other = files.vnodes.get_or_make(key(2)).0;
    assert!(
        poll(pin!(files.open_handle(&other, &status(1, 0), OpenFlags::READ, None))).is_pending(),
        "there was one"
    );
}

#[test]
fn an_open_file_has_a_status_although_it_was_found_to_be_removed_before_it_was_counted() {
    let (files, vnode) = machine();
    vnode.state().status = None;
    let handle = open(&files, &vnode, 5, OpenFlags::READ);
    assert_eq!(vnode.state().status, Some(status(5, LENGTH)));
    release(&files, &handle);
}

#[test]
fn spare_cache_files_are_bounded_and_deleted_on_drop() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Arc::new(crate::cache::DiskCache::open(folder.path(), 1 << 20, "").unwrap());
    let jobs = Arc::new(Mutex::new(Vec::new()));
    let to = jobs.clone();
    let env = Parts::default().with_blocking(move |job| to.lock().push(job));
    let (files, _) = machine_with(env.shared(), cache);
    // All at once: each of them finds the stack empty.
    let mut preparing: Vec<_> = (0..20).map(|_| Box::pin(files.prepare_spare())).collect();
    preparing.iter_mut().for_each(|one| assert!(poll(one.as_mut()).is_pending()));
    jobs.lock().drain(..).for_each(|job| job());
    preparing.into_iter().for_each(now);
    let data = || walk(&folder.path().join("data"));
    assert_eq!(data(), 8);
    drop(files);
    assert_eq!(data(), 0);
}

/// Number of files in a directory and below.
fn walk(directory: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { walk(&path) } else { 1 }).sum()
}

/// A task that reads ahead for a handle may still run when the handle is released.
#[test]
fn a_released_handle_is_counted_nowhere() {
    let (files, vnode) = machine();
    let [gone, old] = [(); 2].map(|()| open(&files, &vnode, 5, OpenFlags::READ));
    let data = gone.data();
    release(&files, &gone);
    let refused = now(files.switch_to_current(&gone, &status(6, LENGTH), || ()));
    assert_eq!(refused.err().map(|error| error.kind), Some(ErrorKind::BadHandle));
    now(files.start_passthrough(&gone)).unwrap_err();
    let users = data.content().uses;
    assert_eq!((users.count(), users.passthrough()), (1, 0));
    let newer = open(&files, &vnode, 6, OpenFlags::READ);
    release(&files, &newer);
    assert!(vnode.state().file.data().is_none(), "nobody uses it");
    release(&files, &old);
}

#[test]
fn data_being_truncated_without_a_handle_is_not_retired() {
    let (files, vnode) = machine();
    let reader = open(&files, &vnode, 5, OpenFlags::READ);
    fetch(&reader.data());
    let known = status(5, LENGTH);
    let in_use = now(files.use_current(&vnode, &known, None)).unwrap();
    let data = in_use.data.clone();
    now(files.prepare_change(vnode.key, &data)).unwrap();
    release(&files, &reader);
    now(files.cut(&data, 3)).unwrap();
    assert!(!files.may_have(vnode.key), "what was cut is kept as what the server has");
    drop(in_use);
    assert_eq!(files.store_retries(), [(vnode.key, None)], "given up half-way, it is stored later");
    files.discard(&vnode, &data);
    assert!(vnode.state().file.data().is_none() && !files.has_store_retries());
}

/// A failed attempt by another user does not change the user of a retry.
#[test]
fn a_store_listed_for_retry_keeps_its_user() {
    let (files, vnode) = machine();
    let (owner, other) = (Some(TokenOwner::Uid(1)), Some(TokenOwner::Uid(2)));
    files.keep_retry_user(vnode.key, owner);
    assert!(!files.has_store_retries(), "what was not listed is");
    files.store_failed(vnode.key, owner);
    let listed = files.retry_user(vnode.key).unwrap();
    files.store_failed(vnode.key, other);
    files.keep_retry_user(vnode.key, listed);
    assert_eq!(files.store_retries(), [(vnode.key, owner)]);
}

#[test]
fn a_half_fetched_version_under_passthrough_is_not_stored_nor_taken_for_writes() {
    let (files, vnode) = machine();
    let writer = open(&files, &vnode, 5, OpenFlags::READ_WRITE);
    let data = writer.data();
    fetch(&data);
    now(files.start_passthrough(&writer)).unwrap();
    now(files.take_version(&data, &status(6, LENGTH))).unwrap();
    data.file.write_at(0, b"of the new").unwrap();
    let refused = now(files.note_kernel_writes_to_store(&vnode, &data));
    assert_eq!(refused.err().map(|error| error.kind), Some(ErrorKind::Cache));
    assert!(!data.content().is_dirty(), "what came of the new version was taken for the kernel's");
    fetch(&data);
    now(files.mark_whole(&data)).unwrap();
    now(files.note_kernel_writes_to_store(&vnode, &data)).unwrap();
    assert!(!data.content().is_dirty());
}

type Jobs = Arc<Mutex<VecDeque<Box<dyn FnOnce() + Send>>>>;

/// A cache whose I/O runs when the test says so, in the order it says.
fn machine_with_jobs() -> (Files, Arc<Vnode>, Jobs) {
    let jobs = Jobs::default();
    let queue = jobs.clone();
    let env = Parts::default().with_blocking(move |job| queue.lock().push_back(job)).shared();
    let (files, vnode) = machine_with(env, Arc::new(Blocking(MemoryCache::new(1 << 20))));
    (files, vnode, jobs)
}

/// Runs waiting jobs, the last first, until the future is ready.
fn drive<T>(jobs: &Jobs, mut future: Pin<&mut impl Future<Output = T>>) -> T {
    loop {
        if let Poll::Ready(done) = poll(future.as_mut()) {
            return done;
        }
        let job = jobs.lock().pop_back().expect("it waits for work");
        job();
    }
}

#[test]
fn data_about_to_change_is_not_kept_by_a_retirement_in_progress() {
    let (files, vnode, jobs) = machine_with_jobs();
    let known = status(5, LENGTH);
    let first = drive(&jobs, pin!(files.open_handle(&vnode, &known, OpenFlags::READ, None))).unwrap();
    let data = first.data();
    fetch(&data);
    files.release_handle(first.id).unwrap();
    drive(&jobs, pin!(files.retire(&vnode, &data, None)));
    assert!(files.may_have(vnode.key) && vnode.state().file.data().is_none());

    // Opened again, and its state has changed when it is retired again.
    let second = drive(&jobs, pin!(files.open_handle(&vnode, &known, OpenFlags::READ, None))).unwrap();
    let data = second.data();
    files.release_handle(second.id).unwrap();
    let mut retire = pin!(files.retire(&vnode, &data, None));
    assert!(poll(retire.as_mut()).is_pending());
    let mut hold = pin!(files.open_handle(&vnode, &known, OpenFlags::READ_WRITE, None));
    let writer = drive(&jobs, hold.as_mut()).unwrap();
    let changing = writer.data();
    let mut prepare_change = pin!(files.prepare_change(vnode.key, &changing));
    let early = poll(prepare_change.as_mut());
    // I/O of two tasks may run in any order.
    while let Some(job) = jobs.lock().pop_back() {
        job();
    }
    drive(&jobs, retire);
    if early.is_pending() {
        drive(&jobs, prepare_change).unwrap();
    }
    drive(&jobs, pin!(files.cut(&changing, 3))).unwrap();
    assert!(!files.may_have(vnode.key), "what was cut is kept as what the server has");
    assert!(is_current(&vnode.state(), &changing));
}

/// The reader may still fetch into its cache file.
#[test]
fn an_open_after_a_lost_lock_gets_a_new_cache_file() {
    let (files, vnode) = machine();
    let first = open(&files, &vnode, 5, OpenFlags::READ);
    fetch(&first.data());
    release(&files, &first);
    assert!(files.may_have(vnode.key));
    let reader = open(&files, &vnode, 5, OpenFlags::READ);
    now(files.lock_lost(&vnode));
    let writer = open(&files, &vnode, 5, OpenFlags::READ_WRITE);
    assert_ne!(writer.data().file.id(), reader.data().file.id());
    assert!(reader.data().lost.load(Ordering::SeqCst) && !writer.data().lost.load(Ordering::SeqCst));
}

#[test]
fn data_being_retired_is_not_kept_after_its_lock_was_lost() {
    let (files, vnode, jobs) = machine_with_jobs();
    let known = status(5, LENGTH);
    let first = drive(&jobs, pin!(files.open_handle(&vnode, &known, OpenFlags::READ, None))).unwrap();
    let data = first.data();
    fetch(&data);
    files.release_handle(first.id).unwrap();
    let mut retire = pin!(files.retire(&vnode, &data, None));
    assert!(poll(retire.as_mut()).is_pending());
    let reader = now(files.open_handle(&vnode, &known, OpenFlags::READ, None)).unwrap();
    assert!(Arc::ptr_eq(&reader.data(), &data));
    let mut lose = pin!(files.lock_lost(&vnode));
    let early = poll(lose.as_mut());
    drive(&jobs, retire);
    if early.is_pending() {
        drive(&jobs, lose);
    }
    assert!(!files.may_have(vnode.key), "the cache file of a reader is found by others");
}

#[test]
fn a_newer_version_does_not_replace_data_with_a_new_writer() {
    let (files, vnode, jobs) = machine_with_jobs();
    let old =
        drive(&jobs, pin!(files.open_handle(&vnode, &status(5, LENGTH), OpenFlags::READ, None))).unwrap();
    let newer = status(6, LENGTH);
    let mut hold = pin!(files.open_handle(&vnode, &newer, OpenFlags::READ, None));
    assert!(poll(hold.as_mut()).is_pending());
    // By a task that knows the older status.
    let writer = now(files.open_handle(&vnode, &status(5, LENGTH), OpenFlags::READ_WRITE, None)).unwrap();
    let reader = drive(&jobs, hold).unwrap();
    assert!(Arc::ptr_eq(&reader.data(), &writer.data()) && Arc::ptr_eq(&old.data(), &writer.data()));
    assert!(is_current(&vnode.state(), &writer.data()), "what is written is not the file's");
}

/// A memory cache that claims to block.
struct Blocking(MemoryCache);

impl CacheStore for Blocking {
    fn create(&self) -> std::io::Result<Arc<dyn CacheFile>> {
        self.0.create()
    }

    fn find(&self, key: &CacheKey) -> Option<(Arc<dyn CacheFile>, Kept)> {
        self.0.find(key)
    }

    fn may_have(&self, cell: &CellName, fid: Fid) -> bool {
        self.0.may_have(cell, fid)
    }

    fn keep(&self, key: &CacheKey, file: &Arc<dyn CacheFile>, kept: &Kept) -> std::io::Result<()> {
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

    fn fits(&self, _: u64) -> bool {
        true
    }

    fn make_room(&self, wanted: u64) -> bool {
        self.0.make_room(wanted)
    }

    fn blocks(&self) -> bool {
        true
    }

    fn shut_down(&self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn kernel_writes_that_no_server_has_outlive_a_kill_and_stored_ones_are_not_taken_for_them() {
    use std::os::unix::fs::FileExt;
    for (is_noted, is_stored) in [(false, false), (true, false), (true, true)] {
        let dir = tempfile::tempdir().unwrap();
        let open_cache = || Arc::new(crate::cache::DiskCache::open(dir.path(), 1 << 20, "boot").unwrap());
        let (files, vnode) = machine_with(Parts::inline(), open_cache());
        let writer = open(&files, &vnode, 1, OpenFlags { read: true, write: true, ..OpenFlags::default() });
        let data = writer.data();
        fetch(&data);
        now(files.start_passthrough(&writer)).unwrap();
        data.file.file().unwrap().write_all_at(b"by the kernel", 0).unwrap();
        if is_noted {
            now(files.note_kernel_writes(&vnode)).unwrap();
        }
        if is_stored {
            data.content().was_stored(DataVersion(2));
            now(files.kernel_writes_stored(&data));
        }
        std::mem::forget(data);
        drop((files, vnode, writer));
        let found = open_cache().unsaved().len();
        assert_eq!(found, usize::from(!is_stored), "{is_noted} {is_stored}");
    }
}
