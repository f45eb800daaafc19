//! Tests of files that the kernel may write when the process is killed.

use std::sync::Arc;

use afs_wire::ids::{CellName, DataVersion, Fid, Uniquifier, VnodeId, VolumeId};

use super::*;
use crate::api::TokenOwner;
use crate::cache::disk::unsaved::UnsavedDirectory;
use crate::cache::{CacheFile, CacheKey, CacheStore, DiskCache, Kept, UnsavedTicket};

const OWNER: TokenOwner = TokenOwner::Uid(7);
const BEFORE: &[u8] = b"as the server has it";

fn of(vnode: u32) -> WrittenFile {
    WrittenFile {
        cell: CellName::new("example.org").unwrap(),
        fid: Fid::new(VolumeId(1), VnodeId(vnode), Uniquifier(1)),
        owner: Some(OWNER),
        version: DataVersion(4),
        base_length: BEFORE.len() as u64,
    }
}

fn opened(dir: &Path, boot: &str) -> DiskCache {
    DiskCache::open(dir, 1 << 20, boot).unwrap()
}

/// A file of the cache that the kernel may write, marked.
fn written(cache: &DiskCache, vnode: u32) -> Arc<dyn CacheFile> {
    let file = cache.create().unwrap();
    file.write_at(0, BEFORE).unwrap();
    cache.begin_writing(&file, of(vnode)).unwrap();
    file.mark().unwrap();
    file
}

/// As the kernel writes: past the store.
fn write(file: &Arc<dyn CacheFile>, data: &[u8]) {
    std::os::unix::fs::FileExt::write_all_at(&*file.file().unwrap(), data, 0).unwrap();
}

/// What a kill of the process does: no file is closed in order.
fn kill(cache: DiskCache, files: Vec<Arc<dyn CacheFile>>) {
    std::mem::forget(files);
    drop(cache);
}

fn vnodes(cache: &DiskCache) -> Vec<u32> {
    let record = |ticket: UnsavedTicket| cache.open_unsaved(ticket).unwrap().1;
    cache.unsaved().into_iter().map(|ticket| record(ticket).fid.vnode.0).collect()
}

#[test]
fn what_the_kernel_wrote_is_unsaved_data_of_the_next_process_also_after_a_crash_of_the_machine() {
    for (is_orderly, boot) in [(false, "boot"), (false, "another boot"), (true, "boot")] {
        let dir = tempfile::tempdir().unwrap();
        let cache = opened(dir.path(), "boot");
        let files: Vec<_> = (1..=4).map(|vnode| written(&cache, vnode)).collect();
        write(&files[0], b"AS");
        // Noted by Venus, and not stored.
        write(&files[1], b"it");
        cache.set_changed(&files[1], true).unwrap();
        files[1].mark().unwrap();
        // Noted and stored; the last one was never written.
        write(&files[2], b"it");
        cache.set_changed(&files[2], true).unwrap();
        files[2].mark().unwrap();
        cache.set_changed(&files[2], false).unwrap();
        if is_orderly {
            cache.shut_down().unwrap();
        }
        kill(cache, files);

        let cache = opened(dir.path(), boot);
        assert_eq!(vnodes(&cache), [1, 2], "{is_orderly} {boot}");
        let (data, record) = cache.open_unsaved(cache.unsaved()[0]).unwrap();
        assert_eq!(&data.read_at(0, 100).unwrap()[..], b"AS the server has it");
        assert_eq!((record.owner, record.version, record.is_open), (Some(OWNER), DataVersion(4), true));
        // It stays until it is dropped, whatever the index says.
        drop((data, cache));
        let cache = opened(dir.path(), "a third boot");
        assert_eq!(vnodes(&cache), [1, 2]);
    }
}

#[test]
fn a_file_that_is_kept_or_gone_is_not_unsaved() {
    let dir = tempfile::tempdir().unwrap();
    let cache = opened(dir.path(), "boot");
    let (kept, gone) = (written(&cache, 1), written(&cache, 2));
    for file in [&kept, &gone] {
        write(file, b"AS");
        cache.set_changed(file, true).unwrap();
    }
    let WrittenFile { cell, fid, version, .. } = of(1);
    let (length, present) = (BEFORE.len() as u64, Ranges::whole(BEFORE.len() as u64));
    cache
        .keep(&CacheKey { cell, fid, version }, &kept, &Kept { length, present, holes: Ranges::new() })
        .unwrap();
    drop(gone);
    kill(cache, vec![kept]);
    assert_eq!(vnodes(&opened(dir.path(), "boot")), [0; 0]);
}

#[test]
fn what_is_being_written_outlives_a_rewritten_index_and_what_is_gone_does_not_stay_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let cache = opened(dir.path(), "boot");
    let file = written(&cache, 1);
    write(&file, b"AS");
    for vnode in 2..3000 {
        drop(written(&cache, vnode));
    }
    assert!(std::fs::metadata(dir.path().join("index")).unwrap().len() < 200_000, "it grows with every open");
    kill(cache, vec![file]);
    assert_eq!(vnodes(&opened(dir.path(), "boot")), [1]);
}

/// A directory on a disk that has no room for a record.
struct Full<'a>(&'a UnsavedDirectory);

impl UnsavedDisk for Full<'_> {
    fn flush_data(&self, number: u64) -> io::Result<()> {
        self.0.flush_data(number)
    }

    fn name_data(&self, number: u64) -> io::Result<()> {
        self.0.name_data(number)
    }

    fn write(&self, name: &str, _bytes: &[u8]) -> io::Result<()> {
        self.0.write(name, &[])?;
        Err(io::ErrorKind::StorageFull.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn flush_names(&self) -> io::Result<()> {
        self.0.flush_names()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.0.names()
    }
}

#[test]
fn data_for_whose_record_there_is_no_room_is_left_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let cache = opened(dir.path(), "boot");
    let path_of = |number| cache.path(number);
    let file = written(&cache, 1);
    let number = file.id();
    write(&file, b"AS");
    let mut kept = KeptFiles::default();
    kept.begin_writing(number, &BeingWritten { of: of(1), is_changed: false });
    let directory = UnsavedDirectory::open(dir.path(), super::super::local::path_of).unwrap();
    let mut found = unsaved::Found::default();
    set_aside(&mut kept, &Full(&directory), path_of, &mut found, &Sealing::Plain).unwrap();
    assert_eq!((found.kept, found.lone), (vec![], vec![number]));
    kill(cache, vec![file]);
    // It has lost its record for the next processes, too, and is not swept.
    for _ in 0..2 {
        assert_eq!(vnodes(&opened(dir.path(), "boot")), [0; 0]);
        assert_eq!(std::fs::read(directory.path(&format!("{number:x}"))).unwrap(), b"AS the server has it");
    }
}
