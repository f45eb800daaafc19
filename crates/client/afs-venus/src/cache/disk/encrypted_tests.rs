//! Tests of encrypted caches: nothing on disk can be read, and a cache opens with its key alone.

use std::fs;
use std::path::Path;

use ::bytes::Bytes;
use afs_wire::fs::Status;
use afs_wire::ids::{DataVersion, Uniquifier, UnixSeconds, VnodeId, VolumeId};

use super::*;
use crate::api::TokenOwner;
use crate::cache::unsaved::tests::record;
use crate::cache::{OfflineObject, Ranges};

const ROOM: u64 = 1 << 20;
const BOOT: &str = "boot";

fn cell() -> CellName {
    CellName::new("example.org").unwrap()
}

fn secret(user: &str, key: u8) -> CacheSecret {
    CacheSecret::new(cell(), user.to_owned(), [key; 32], [9; 16])
}

fn opened_with(dir: &Path, boot: &str, secret: Option<&CacheSecret>) -> io::Result<DiskCache> {
    let (cache, sweeper) = DiskCache::open_unswept(dir, ROOM, boot, secret)?;
    sweeper.sweep()?;
    Ok(cache)
}

fn opened(dir: &Path) -> DiskCache {
    opened_with(dir, BOOT, Some(&secret("alice", 1))).unwrap()
}

fn refused(dir: &Path, secret: Option<&CacheSecret>) -> CacheKeyError {
    let error = opened_with(dir, BOOT, secret).err().unwrap();
    error.downcast::<CacheKeyError>().unwrap()
}

fn fid(vnode: u32) -> Fid {
    Fid::new(VolumeId(7), VnodeId(vnode), Uniquifier(1))
}

fn key(vnode: u32) -> CacheKey {
    CacheKey { cell: cell(), fid: fid(vnode), version: DataVersion(1) }
}

fn keep(cache: &DiskCache, vnode: u32, data: &[u8]) {
    let file = cache.create().unwrap();
    file.write_at(0, data).unwrap();
    let length = data.len() as u64;
    cache
        .keep(&key(vnode), &file, &Kept { length, present: Ranges::whole(length), holes: Ranges::new() })
        .unwrap();
}

fn found(cache: &DiskCache, vnode: u32) -> Option<Bytes> {
    let (file, kept) = cache.find(&key(vnode))?;
    Some(file.read_at(0, kept.length as usize).unwrap())
}

/// Text of which no 16 bytes are those of another place.
fn text(about: &str, len: usize) -> Vec<u8> {
    (0..).flat_map(|n| format!("<{about} {n:09}>").into_bytes()).take(len).collect()
}

/// What a cache is given: contents of a file and of a directory, the text of a link, the path of a pin, unsaved data.
fn secrets() -> [Vec<u8>; 5] {
    ["contents", "names of a directory", "text of a link", "path of a pin", "unsaved data"].map(|about| {
        text(about, if about.starts_with("te") || about.starts_with("path") { 60 } else { 20_011 })
    })
}

fn filled(cache: &DiskCache) {
    let [contents, names, link, path, unsaved] = secrets();
    keep(cache, 2, &contents);
    keep(cache, 1, &names);
    let status = Status { data_version: DataVersion(1), ..Status::default() };
    let object =
        OfflineObject { status, promised_at: UnixSeconds(5), link: link.into(), readers: Vec::new() };
    cache.keep_offline(&cell(), fid(4), OfflineRecord::Object(object)).unwrap();
    let pin = PinRecord {
        cell: cell(),
        fid: fid(4),
        owner: Some(TokenOwner::Uid(7)),
        is_recursive: true,
        is_offline: true,
        path,
    };
    cache.keep_pins(&[pin]).unwrap();
    let file = cache.create().unwrap();
    file.write_at(0, &unsaved).unwrap();
    assert!(cache.keep_unsaved(&file, &record()).unwrap().is_some());
    std::mem::forget(file);
}

/// The bytes of all files below a directory, as they are on disk.
fn all_bytes(dir: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(all_bytes(&entry.path())),
            false => all.extend(fs::read(entry.path()).unwrap()),
        }
    }
    all
}

/// How many pieces of 16 bytes of the secrets are in the files.
fn leaks(dir: &Path) -> usize {
    let pieces: std::collections::BTreeSet<Vec<u8>> = secrets()
        .iter()
        .flat_map(|secret| secret.windows(16).map(<[u8]>::to_vec).collect::<Vec<_>>())
        .collect();
    all_bytes(dir).windows(16).filter(|window| pieces.contains(*window)).count()
}

#[test]
fn nothing_that_was_cached_or_not_stored_can_be_read_on_disk() {
    for is_encrypted in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let alice = secret("alice", 1);
        let cache = opened_with(dir.path(), BOOT, is_encrypted.then_some(&alice)).unwrap();
        filled(&cache);
        let found = leaks(dir.path());
        assert_eq!(found == 0, is_encrypted, "{found} pieces while it is in use, encrypted {is_encrypted}");
        cache.shut_down().unwrap();
        assert_eq!(leaks(dir.path()) == 0, is_encrypted, "after the stop");
    }
}

#[test]
fn a_cache_is_read_again_with_its_key() {
    let dir = tempfile::tempdir().unwrap();
    filled(&opened(dir.path()));
    let [contents, names, link, path, unsaved] = secrets();
    let cache = opened(dir.path());
    assert_eq!((found(&cache, 2).unwrap(), found(&cache, 1).unwrap()), (contents.into(), names.into()));
    let Some(OfflineRecord::Object(object)) = cache.offline(&cell(), fid(4)) else { panic!("no record") };
    assert_eq!((object.link, &cache.pins().unwrap()[0].path), (Bytes::from(link), &path));
    drop(cache);
    // After a crash of the machine, what was not stored.
    let cache = opened_with(dir.path(), "next boot", Some(&secret("alice", 1))).unwrap();
    assert_eq!((found(&cache, 2), cache.unsaved().len()), (None, 1));
    let (file, read) = cache.open_unsaved(cache.unsaved()[0]).unwrap();
    assert_eq!((file.read_at(0, 1 << 20).unwrap(), read), (unsaved.into(), record()));
    assert!(file.file().is_none(), "the kernel would read and write the cipher text");
}

#[test]
fn a_cache_does_not_open_with_another_key_or_without_one_and_nothing_of_it_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    filled(&opened(dir.path()));
    let before = all_bytes(dir.path());
    let (user, cell) = (|| "alice".to_owned(), || "example.org".to_owned());
    assert_eq!(refused(dir.path(), None), CacheKeyError::Encrypted { user: user(), cell: cell() });
    let given = "bob in example.org".to_owned();
    assert_eq!(
        refused(dir.path(), Some(&secret("bob", 2))),
        CacheKeyError::Other { user: user(), cell: cell(), given }
    );
    assert_eq!(
        refused(dir.path(), Some(&secret("alice", 2))),
        CacheKeyError::Changed { user: user(), cell: cell() }
    );
    assert!(all_bytes(dir.path()) == before);
    assert!(found(&opened(dir.path()), 2).is_some());
}

#[test]
fn a_cache_with_files_does_not_become_encrypted_and_an_empty_one_does() {
    let dir = tempfile::tempdir().unwrap();
    opened_with(dir.path(), BOOT, None).unwrap().shut_down().unwrap();
    opened(dir.path()).shut_down().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let cache = opened_with(dir.path(), BOOT, None).unwrap();
    keep(&cache, 2, b"in plain text");
    drop(cache);
    assert_eq!(refused(dir.path(), Some(&secret("alice", 1))), CacheKeyError::NotEncrypted);
    assert!(!dir.path().join("key").exists());
    assert!(found(&opened_with(dir.path(), BOOT, None).unwrap(), 2).is_some());
}

#[test]
fn a_damaged_or_missing_key_file_is_named_and_nothing_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    filled(&opened(dir.path()));
    let path = dir.path().join("key");
    let good = fs::read(&path).unwrap();
    let before = all_bytes(dir.path()).len();
    let alice = secret("alice", 1);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 4;
        for bad in [bad.as_slice(), &good[..at]] {
            fs::write(&path, bad).unwrap();
            for given in [None, Some(&alice)] {
                assert!(
                    matches!(refused(dir.path(), given), CacheKeyError::File { path: named, .. } if named == path)
                );
            }
        }
    }
    fs::remove_file(&path).unwrap();
    assert!(matches!(refused(dir.path(), None), CacheKeyError::File { .. }));
    assert_eq!(refused(dir.path(), Some(&alice)), CacheKeyError::NotEncrypted);
    fs::create_dir(&path).unwrap();
    assert!(matches!(refused(dir.path(), None), CacheKeyError::File { .. }));
    fs::remove_dir(&path).unwrap();
    fs::write(&path, good).unwrap();
    assert_eq!(all_bytes(dir.path()).len(), before);
    assert!(found(&opened(dir.path()), 2).is_some());
}
