//! Lists of changes: what single changes leave, in one commit, as far as they succeed.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afs_env::{Parts, UnixTime};
use afs_sim::crash::{CrashDisk, Rng, seeds};
use afs_volume::{
    NewData, NumberedList, Rename, Replacing, StoreData, Volume, VolumeError, VolumeStore, VolumeTx,
};
use afs_wire::fs::SetStatus;
use afs_wire::ids::{Fid, VnodeId};
use bytes::Bytes;
use support::series::listed;
use support::*;

/// A change in the root directory.
#[derive(Clone, Debug)]
enum Change {
    /// A file with data.
    Create(String, Vec<u8>),
    /// A file whose data is refused when its name is already there.
    CreateAndFail(String),
    MakeDir(String),
    Symlink(String),
    Remove(String),
    RemoveDir(String),
    Rename(String, String),
    Truncate(Fid),
}

/// A change whose data is ready.
type Ready = (Change, Option<NewData>);

fn ready(volume: &Volume, change: &Change) -> Ready {
    let bytes = match change {
        Change::Create(_, bytes) => Bytes::copy_from_slice(bytes),
        Change::Truncate(_) => Bytes::new(),
        _ => return (change.clone(), None),
    };
    let mut writer = volume.write_data(0).unwrap();
    now(writer.push(bytes)).unwrap();
    (change.clone(), Some(now(writer.finish()).unwrap()))
}

fn apply(tx: &mut VolumeTx<'_, '_>, (change, data): Ready) -> Result<(), VolumeError> {
    let set = SetStatus::default();
    let store = |fid| StoreData { fid, file_length: 0, status: set, expected: None };
    match (change, data) {
        (Change::Create(name, _), Some(data)) => {
            let fid = tx.create_file(ROOT, name.as_bytes(), &set, ALICE)?.object.fid(VOLUME);
            tx.store_data(store(fid), data, ALICE).map(drop)
        }
        (Change::CreateAndFail(name), _) => {
            tx.create_file(ROOT, name.as_bytes(), &set, ALICE)?;
            Err(VolumeError::OverQuota)
        }
        (Change::MakeDir(name), _) => tx.make_dir(ROOT, name.as_bytes(), &set, ALICE).map(drop),
        (Change::Symlink(name), _) => tx.symlink(ROOT, name.as_bytes(), b"to", &set, ALICE).map(drop),
        (Change::Remove(name), _) => tx.remove_file(ROOT, name.as_bytes(), ALICE).map(drop),
        (Change::RemoveDir(name), _) => tx.remove_dir(ROOT, name.as_bytes(), ALICE).map(drop),
        (Change::Rename(old, new), _) => {
            let (old_name, new_name) = (old.as_bytes(), new.as_bytes());
            let rename = Rename { old_directory: ROOT, old_name, new_directory: ROOT, new_name };
            tx.rename(rename, Replacing::Allowed, ALICE).map(drop)
        }
        (Change::Truncate(fid), Some(data)) => tx.store_data(store(fid), data, ALICE).map(drop),
        (change, None) => panic!("{change:?} has no data"),
    }
}

/// The changes one by one: how many were made, and why the next was not.
fn one_by_one(volume: &Arc<Volume>, changes: &[Change]) -> (usize, Option<String>) {
    for (made, change) in changes.iter().enumerate() {
        let ready = ready(volume, change);
        if let Err(error) = update(volume, move |tx| apply(tx, ready)) {
            return (made, Some(format!("{error:?}")));
        }
    }
    (changes.len(), None)
}

fn as_list(volume: &Arc<Volume>, changes: &[Change]) -> Result<(usize, Option<String>), VolumeError> {
    let ready: Vec<Ready> = changes.iter().map(|change| ready(volume, change)).collect();
    let outcome = now(volume.update_list(first_list(), ready, apply, |()| None))?;
    Ok((outcome.done.len(), outcome.failed.map(|error| format!("{error:?}"))))
}

/// The first list of a series of its own.
fn first_list() -> NumberedList {
    static SERIES: AtomicU64 = AtomicU64::new(0);
    listed(SERIES.fetch_add(1, Ordering::Relaxed) << 48, 1)
}

/// All that a volume has, in words.
fn state(volume: &Arc<Volume>) -> String {
    let mut state = format!("{:?}", volume.header());
    for vnode in (1..200).map(VnodeId) {
        let Some(record) = volume.vnode(vnode).unwrap() else { continue };
        let data = read_bytes(volume, record.fid(VOLUME), 0, u64::MAX).unwrap();
        state += &format!("\n{record:?} {data:?}");
    }
    state
}

fn random_change(rng: &mut Rng) -> Change {
    let (name, other) = (format!("n{}", rng.below(9)), format!("n{}", rng.below(9)));
    let len = [0, 1, 700, 16_384][rng.below(4) as usize];
    let mark = rng.next() as u8 | 1;
    match rng.below(20) {
        0..=6 => Change::Create(name, vec![mark; len]),
        7 => Change::CreateAndFail(name),
        8 | 9 => Change::MakeDir(name),
        10 => Change::Symlink(name),
        11..=14 => Change::Remove(name),
        15 => Change::RemoveDir(name),
        16 => Change::Truncate(Fid { vnode: VnodeId(2), ..ROOT }),
        _ => Change::Rename(name, other),
    }
}

/// A store whose clock stands still, so that its states can be compared.
fn still_store() -> (VolumeStore, Arc<Volume>) {
    let env = Parts::default().with_wall(|| UnixTime { secs: 1_000_000_000, nanos: 0 }).shared();
    let (store, _) = open_in(env, &CrashDisk::new(), &CrashDisk::new()).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    (store, volume)
}

#[test]
fn a_list_leaves_what_its_changes_leave_one_by_one() {
    for seed in seeds(20) {
        let mut rng = Rng(seed);
        let (single, list) = (still_store(), still_store());
        for _ in 0..60 {
            let changes: Vec<_> = (0..rng.below(9)).map(|_| random_change(&mut rng)).collect();
            let expected = one_by_one(&single.1, &changes);
            assert_eq!(as_list(&list.1, &changes).unwrap(), expected, "seed {seed}: {changes:?}");
            assert_eq!(state(&list.1), state(&single.1), "seed {seed}: {changes:?}");
        }
    }
}

#[test]
fn a_change_that_fails_late_leaves_no_name_and_ends_the_list() {
    let (_store, volume) = still_store();
    let create = |name: &str| Change::Create(name.into(), b"data".to_vec());
    let before = volume.header().file_count;
    let changes = [create("a"), Change::CreateAndFail("b".into()), create("c")];
    assert_eq!(as_list(&volume, &changes).unwrap(), (1, Some("OverQuota".into())));
    assert_eq!(volume.header().file_count, before + 1);
    assert_eq!(one_by_one(&volume, &[create("b"), create("c")]), (2, None), "neither name was taken");
}

/// Power failures at every write of a list: all of it is there afterwards, or nothing.
#[test]
fn a_power_cut_leaves_all_of_a_list_or_nothing() {
    let changes: Vec<_> = (0..12).map(|n| Change::Create(format!("f{n}"), vec![n + 1; 3000])).collect();
    let mut seen = [false; 2];
    for fuse in 0..40 {
        let disk = CrashDisk::new();
        let store = open(&disk, &disk).unwrap();
        let volume = now(store.create_volume(spec(0))).unwrap();
        disk.crash_after(fuse);
        let answer = as_list(&volume, &changes);
        drop((volume, store));
        let mut rng = Rng(fuse + 1);
        let image = disk.image(&mut rng);
        let volume = open(&image, &image).unwrap().volume(VOLUME).unwrap();
        let found = volume.header().file_count as usize - 1;
        assert!(found == 0 || found == changes.len(), "{found} of them after {fuse} writes");
        assert!(answer.is_err() || found == changes.len(), "acknowledged and lost");
        for n in 0..found as u32 {
            let record = volume.vnode(VnodeId(2 + 2 * n)).unwrap().unwrap();
            let data = read_bytes(&volume, record.fid(VOLUME), 0, u64::MAX).unwrap();
            assert_eq!(data.len(), 3000, "a name without its data");
        }
        seen[usize::from(found > 0)] = true;
    }
    assert_eq!(seen, [true; 2], "crashes before and after the commit");
}
