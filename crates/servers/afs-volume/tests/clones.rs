//! Clones and restores in cases that the random test does not cover: dates, quotas, refusals, large contents,
//! readers, damage, an older format.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::sync::Arc;

use afs_drive::{SegmentDrive, SegmentStore};
use afs_env::{Parts, UnixTime};
use afs_kv::{Kv, MemoryMedium};
use afs_sim::crash::CrashDisk;
use afs_volume::{
    BadPart, CloneSpec, Config, ImageData, RestoredHeader, SLOT_LEN, Scrub, TABLES, VnodeImage, Volume,
    VolumeError, VolumeSpec, VolumeStore, WINDOW_SLOTS,
};
use afs_wire::ids::{DataVersion, Fid, Uniquifier, UnixSeconds, VnodeId, VolumeId, VolumeKind, VolumeName};
use support::members::{self, check_nothing_leaks, read, records};
use support::model::kind_of;
use support::*;

fn name(text: &str) -> VolumeName {
    VolumeName::new(text).unwrap()
}

fn clone_spec(id: u32, kind: VolumeKind) -> CloneSpec {
    CloneSpec { id: VolumeId(id), name: name(&format!("clone{id}")), kind, snapshot: false }
}

fn clone_of(store: &VolumeStore, id: u32, kind: VolumeKind) -> Arc<Volume> {
    now(store.clone_volume(VOLUME, clone_spec(id, kind))).unwrap()
}

fn refused<T>(answer: Result<T, VolumeError>) -> String {
    answer.err().map_or_else(|| "Ok".into(), |error| kind_of(&error))
}

#[test]
fn clones_have_the_documented_dates_and_numbers() {
    let (store, volume) = memory_store();
    let file = create(&volume, ROOT, b"f").unwrap();
    let updated = volume.header().update_date;
    let read_only = clone_of(&store, 7, VolumeKind::ReadOnly).header();
    assert_eq!(read_only.creation_date, read_only.copy_date);
    assert!(read_only.creation_date > updated && read_only.update_date == updated);
    assert!(read_only.destroy && !read_only.online);
    assert_eq!(
        (read_only.parent, read_only.read_only, read_only.backup_date),
        (VOLUME, VolumeId(7), UnixSeconds(0))
    );
    assert_eq!((volume.header().read_only, volume.header().backup_date), (VolumeId(7), UnixSeconds(0)));
    let backup = clone_of(&store, 8, VolumeKind::Backup).header();
    assert_eq!(
        (backup.backup_date, volume.header().backup_date),
        (backup.creation_date, backup.creation_date)
    );
    assert_eq!(volume.header().backup, VolumeId(8));
    let spec =
        CloneSpec { name: name("root.cell.daily"), snapshot: true, ..clone_spec(9, VolumeKind::Backup) };
    now(store.clone_volume(VOLUME, spec)).unwrap();
    assert_eq!(volume.header().backup, VolumeId(8));
    store_bytes(&volume, file, 0, b"more", u64::MAX).unwrap();
    now(store.reclone_volume(VOLUME, VolumeId(7))).unwrap();
    let again = store.volume(VolumeId(7)).unwrap().header();
    assert_eq!((again.copy_date, again.update_date), (read_only.copy_date, volume.header().update_date));
    assert!(again.creation_date > read_only.creation_date && again.online && !again.destroy);
    assert_eq!(again.name, name("root.cell.readonly"));
    now(store.reclone_volume(VOLUME, VolumeId(9))).unwrap();
    assert_eq!(store.volume(VolumeId(9)).unwrap().header().name, name("root.cell.daily"));
    let snapshots: Vec<_> = store.snapshots(VOLUME).iter().map(|volume| volume.id()).collect();
    assert_eq!(snapshots, [VolumeId(9)]);
    assert_eq!(refused(now(store.clone_volume(VOLUME, clone_spec(8, VolumeKind::ReadOnly)))), "VolumeExists");
    assert_eq!(refused(now(store.reclone_volume(VOLUME, VOLUME))), "Invalid");
    let clone = store.volume(VolumeId(8)).unwrap();
    assert_eq!(refused(update(&clone, |_| Ok(()))), "ReadOnly");
}

/// Releases and backups while the clock stands, as within one second.
#[test]
fn each_clone_is_later_than_the_one_before_however_soon_it_follows() {
    let clock = UnixTime { secs: 1_000_000_000, nanos: 0 };
    let env = Parts::default().with_wall(move || clock).shared();
    let (store, _) = open_in(env, &CrashDisk::new(), &CrashDisk::new()).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let mut dates = vec![volume.header().creation_date];
    clone_of(&store, 8, VolumeKind::ReadOnly);
    for round in 0..3 {
        create(&volume, ROOT, format!("f{round}").as_bytes()).unwrap();
        // What a release and increments look for: not before the last clone.
        assert!(round == 0 || volume.header().update_date >= *dates.last().unwrap());
        dates.push(clone_of(&store, 7, VolumeKind::ReadOnly).header().creation_date);
        now(store.delete_volume(VolumeId(7))).unwrap();
        now(store.reclone_volume(VOLUME, VolumeId(8))).unwrap();
        dates.push(store.volume(VolumeId(8)).unwrap().header().creation_date);
    }
    assert!(dates.windows(2).all(|two| two[0] < two[1]), "{dates:?}");
    let clone = store.volume(VolumeId(8)).unwrap().header();
    now(store.delete_volume(VOLUME)).unwrap();
    let back = now(store.convert_to_read_write(VolumeId(8), VOLUME, name("root.cell"))).unwrap();
    let next = clone_of(&store, 9, VolumeKind::ReadOnly).header();
    assert!(next.creation_date > clone.creation_date, "{:?} {:?}", next, back.header());
}

#[test]
fn a_read_write_volume_comes_back_from_a_clone() {
    let (store, volume) = memory_store();
    let file = create(&volume, ROOT, b"f").unwrap();
    let clone = clone_of(&store, 7, VolumeKind::ReadOnly);
    let (before, unique) = (read(&clone), clone.header().next_unique());
    create(&volume, ROOT, b"later").unwrap();
    now(store.delete_volume(VOLUME)).unwrap();
    assert_eq!(refused(read_bytes(&volume, file, 0, 1)), "NoVolume");
    let converted = now(store.convert_to_read_write(VolumeId(7), VOLUME, name("root.cell"))).unwrap();
    assert!(store.volume(VolumeId(7)).is_none());
    let header = converted.header();
    assert_eq!((header.kind, header.restored_from), (VolumeKind::ReadWrite, VolumeId(7)));
    assert_eq!(header.next_unique(), unique + 5000);
    assert!(read(&converted) == before);
    let made = create(&converted, ROOT, b"later").unwrap();
    assert_eq!(made.unique, Uniquifier(unique + 5000));
    run_background(&store);
    assert_eq!(converted.vnode(file.vnode).unwrap().unwrap().unique, file.unique);
}

#[test]
fn a_read_write_clone_of_a_read_write_volume_goes_its_own_way() {
    let (store, volume) = memory_store();
    let file = create(&volume, ROOT, b"f").unwrap();
    store_bytes(&volume, file, 0, &[7; 100_000], u64::MAX).unwrap();
    let unique = volume.header().next_unique();
    let copy = clone_of(&store, 7, VolumeKind::ReadWrite);
    let header = copy.header();
    assert_eq!((header.kind, header.restored_from), (VolumeKind::ReadWrite, VOLUME));
    assert_eq!((header.parent, header.read_only, header.backup), (VolumeId(7), VolumeId(0), VolumeId(0)));
    assert_eq!(header.next_unique(), unique + 5000);
    let before = read(&copy);
    assert!(read(&volume) == before);
    create(&volume, ROOT, b"later").unwrap();
    store_bytes(&volume, file, 0, b"more", u64::MAX).unwrap();
    assert!(read(&copy) == before);
    now(store.delete_volume(VOLUME)).unwrap();
    run_background(&store);
    assert!(read(&copy) == before);
}

#[test]
fn files_count_against_a_quota_of_their_own() {
    let (_store, volume) = memory_store();
    now(volume.edit(|tx| {
        tx.edit_header().max_files = 3;
        Ok(())
    }))
    .unwrap();
    create(&volume, ROOT, b"a").unwrap();
    make_dir(&volume, ROOT, b"b").unwrap();
    let error = create(&volume, ROOT, b"c").unwrap_err();
    assert_eq!(error.code(), afs_wire::error::AbortCode::VOVERQUOTA);
    update(&volume, |tx| tx.remove_file(ROOT, b"a", ALICE)).unwrap();
    create(&volume, ROOT, b"c").unwrap();
}

/// The steps that delete a clone in the middle take away the rows that name its chunks first. The read-write volume, which
/// shares one of them, is deleted between two of those steps.
#[test]
fn a_volume_deleted_while_an_older_clone_is_half_deleted_leaves_no_chunk() {
    let disk = CrashDisk::new();
    let (store, kv) = open_both(&disk, &disk).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let file = create(&volume, ROOT, b"f").unwrap();
    let oldest = clone_of(&store, 7, VolumeKind::ReadOnly);
    let before = read(&oldest);
    store_bytes(&volume, file, 0, &[1; 90_000], u64::MAX).unwrap();
    clone_of(&store, 8, VolumeKind::Backup);
    store_bytes(&volume, file, 10, &[2; 10], u64::MAX).unwrap();
    now(store.delete_volume(VolumeId(8))).unwrap();
    assert!(now(store.background_step()).unwrap(), "its rows are gone, its list of chunks is not");
    now(store.delete_volume(VOLUME)).unwrap();
    run_background(&store);
    assert!(read(&oldest) == before);
    assert_eq!(now(store.sweep()).unwrap().live, 0, "the clone that is left has no data");
    check_nothing_leaks(&store, &kv);
}

/// A sparse file of `slots` slots, with a little data in each.
fn large(volume: &Arc<Volume>, file_name: &[u8], slots: u64) -> Fid {
    let file = create(volume, ROOT, file_name).unwrap();
    for slot in 0..slots {
        store_bytes(volume, file, slot * SLOT_LEN, &[slot as u8 | 1; 20_000], u64::MAX).unwrap();
    }
    file
}

#[test]
fn large_contents_stay_with_the_clones_that_have_them() {
    let disk = CrashDisk::new();
    let (store, kv) = open_both(&disk, &disk).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let file = large(&volume, b"large", 70);
    let clone = clone_of(&store, 7, VolumeKind::ReadOnly);
    store_bytes(&volume, file, 66 * SLOT_LEN, b"changed", u64::MAX).unwrap();
    let second = clone_of(&store, 8, VolumeKind::Backup);
    // Cut so far that the remaining slots move to a content of their own, and then deleted.
    store_bytes(&volume, file, 5, b"x", 2 * SLOT_LEN).unwrap();
    run_background(&store);
    update(&volume, |tx| tx.remove_file(ROOT, b"large", ALICE)).unwrap();
    run_background(&store);
    let at = |volume: &Arc<Volume>, slot: u64, len| {
        let fid = Fid { volume: volume.id(), ..file };
        read_bytes(volume, fid, slot * SLOT_LEN, len).unwrap()
    };
    for slot in 0..70 {
        assert_eq!(at(&clone, slot, 20_000), vec![slot as u8 | 1; 20_000]);
    }
    assert_eq!(&at(&second, 66, 8)[..], b"changed\x43");
    now(store.delete_volume(VolumeId(7))).unwrap();
    run_background(&store);
    assert_eq!(at(&second, 69, 3), [69; 3]);
    assert_eq!(&at(&second, 66, 8)[..], b"changed\x43");
    check_nothing_leaks(&store, &kv);
}

#[test]
fn a_long_read_goes_on_or_ends_with_busy() {
    let (store, volume) = memory_store();
    let file = large(&volume, b"large", WINDOW_SLOTS + 2);
    let clone = clone_of(&store, 7, VolumeKind::ReadOnly);
    let of_clone = Fid { volume: VolumeId(7), ..file };
    let begin = |volume: &Arc<Volume>, fid| {
        let mut reader = volume.read_data(fid, 0, u64::MAX).unwrap();
        now(reader.next()).unwrap();
        reader
    };
    let rest = |mut reader: afs_volume::DataReader| loop {
        match now(reader.next()) {
            Ok(Some(_)) => {}
            Ok(None) => return "whole".to_owned(),
            Err(error) => return kind_of(&error),
        }
    };
    // The same version in another epoch.
    let (first, second) = (begin(&clone, of_clone), begin(&clone, of_clone));
    now(store.reclone_volume(VOLUME, VolumeId(7))).unwrap();
    run_background(&store);
    assert_eq!(rest(first), "whole");
    store_bytes(&volume, file, 0, b"x", u64::MAX).unwrap();
    now(store.reclone_volume(VOLUME, VolumeId(7))).unwrap();
    run_background(&store);
    assert_eq!(rest(second), "Busy");
    let reader = begin(&clone, of_clone);
    now(store.delete_volume(VolumeId(7))).unwrap();
    run_background(&store);
    assert_eq!(rest(reader), "NoVolume");
}

#[test]
fn a_restore_into_an_empty_volume_and_what_it_refuses() {
    let (store, volume) = memory_store();
    let directory = make_dir(&volume, ROOT, b"d").unwrap();
    let file = create(&volume, directory, b"f").unwrap();
    store_bytes(&volume, file, 0, &[5; 50_000], u64::MAX).unwrap();
    let empty = VolumeSpec { id: VolumeId(7), name: name("copy"), root: None, ..spec(0) };
    let copy = now(store.create_volume(empty)).unwrap();
    assert_eq!(copy.header().file_count, 0);
    let from = records(&volume);
    // A directory names a missing vnode.
    let mut restore = now(copy.begin_restore(true)).unwrap();
    for record in from.iter().filter(|record| record.is_directory()) {
        members::put(&mut restore, &volume, record).unwrap();
    }
    assert_eq!(refused(now(restore.keep(VnodeId(2)))), "NoVnode");
    let error = now(restore.commit(RestoredHeader::default())).unwrap_err();
    assert!(error.to_string().contains("\"f\" is vnode 2 3, which does not exist"), "{error}");
    assert_eq!(copy.header().file_count, 0);
    // No root directory.
    let restore = now(copy.begin_restore(true)).unwrap();
    let error = now(restore.commit(RestoredHeader::default())).unwrap_err();
    assert!(error.to_string().contains("no root directory"), "{error}");
    // Invalid images.
    let mut restore = now(copy.begin_restore(true)).unwrap();
    let image = VnodeImage::of(&from[0]);
    let odd = VnodeImage { vnode: VnodeId(4), ..image.clone() };
    assert_eq!(refused(now(restore.put(odd, ImageData::Pages(vec![])))), "Damaged");
    let torn = ImageData::Pages(vec![bytes::Bytes::from_static(&[0; 100])]);
    assert_eq!(refused(now(restore.put(image, torn))), "Damaged");
    for record in &from {
        members::put(&mut restore, &volume, record).unwrap();
    }
    let header = RestoredHeader {
        next_unique: Some(90),
        update_date: Some(UnixSeconds(5)),
        ..RestoredHeader::default()
    };
    now(restore.commit(header)).unwrap();
    assert!(read(&copy) == read(&volume));
    assert_eq!((copy.header().next_unique(), copy.header().update_date), (90, UnixSeconds(5)));
    run_background(&store);
    assert!(read(&copy) == read(&volume));
    let made = now(copy.update(move |tx| {
        let root = Fid::root(VolumeId(7));
        tx.create_file(root, b"new", &afs_wire::fs::SetStatus::default(), ALICE)
    }));
    assert_eq!(made.unwrap().object.vnode, VnodeId(4));
}

#[test]
fn a_writer_waits_for_a_restore_and_goes_on_after_one_that_is_given_up() {
    let (store, volume) = memory_store();
    let file = create(&volume, ROOT, b"f").unwrap();
    let before = read(&volume);
    let mut restore = now(volume.begin_restore(false)).unwrap();
    assert_eq!(refused(create(&volume, ROOT, b"g")), "Busy");
    assert_eq!(refused(now(store.clone_volume(VOLUME, clone_spec(7, VolumeKind::ReadOnly)))), "Busy");
    let record = records(&volume).into_iter().find(|record| record.vnode == file.vnode).unwrap();
    let image = VnodeImage { data_version: DataVersion(9), ..VnodeImage::of(&record) };
    let mut writer = restore.write_data().unwrap();
    now(writer.push(bytes::Bytes::from(vec![1; 40_000]))).unwrap();
    now(restore.put(image, ImageData::Bytes(now(writer.finish()).unwrap()))).unwrap();
    now(restore.keep(VnodeId(1))).unwrap();
    assert!(read(&volume) == before);
    drop(restore);
    // Its leftovers are deleted before the next epoch begins.
    create(&volume, ROOT, b"g").unwrap();
    clone_of(&store, 7, VolumeKind::ReadOnly);
    assert_eq!(volume.fetch(file).unwrap().data_version, DataVersion(0));
    run_background(&store);
    assert_eq!(read(&volume).nodes.len(), 3);
}

#[test]
fn scrub_names_what_is_damaged_and_repair_mends_it_for_all() {
    let segments = afs_drive::MemorySegments::new(1 << 30);
    let kv =
        Kv::open(Arc::new(MemoryMedium::new()), TABLES, Parts::inline(), afs_kv::Config::default()).unwrap();
    let drive = SegmentDrive::open(segments.clone(), Parts::inline(), 8 << 20).unwrap();
    let store =
        now(VolumeStore::open(kv.clone(), Arc::new(drive), Parts::inline(), Config::default())).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let file = create(&volume, ROOT, b"f").unwrap();
    let bytes: Vec<u8> = (0..100_000u32).map(|at| (at % 251) as u8).collect();
    store_bytes(&volume, file, 0, &bytes, u64::MAX).unwrap();
    let other = create(&volume, ROOT, b"g").unwrap();
    store_bytes(&volume, other, 0, &bytes, u64::MAX).unwrap();
    let clone = clone_of(&store, 7, VolumeKind::ReadOnly);
    assert_eq!(scrub(&store, 1).0, []);
    segments.write_at(1, 5000, b"damage").unwrap();
    let (bad, chunks) = scrub(&store, 1 << 20);
    assert_eq!((bad.len(), chunks), (1, 2));
    let found = &bad[0];
    assert_eq!((found.volume, found.vnode, found.unique), (VolumeId(7), file.vnode, file.unique));
    assert!(matches!(found.part, BadPart::Chunk { position: 0, len: 100_000, .. }));
    assert!(read_bytes(&volume, file, 0, u64::MAX).is_err());
    let wrong = bytes::Bytes::from(vec![0; 100_000]);
    assert_eq!(refused(now(store.repair(found, wrong))), "Invalid");
    now(store.repair(found, bytes.clone().into())).unwrap();
    assert_eq!(read_bytes(&volume, file, 0, u64::MAX).unwrap(), bytes);
    let of_clone = Fid { volume: VolumeId(7), ..file };
    assert_eq!(read_bytes(&clone, of_clone, 0, u64::MAX).unwrap(), bytes);
    assert_eq!(scrub(&store, 1 << 20).0, []);
    assert_eq!(refused(now(store.repair(found, bytes.clone().into()))), "Busy");
    drop((volume, clone));
    check_nothing_leaks(&store, &kv);
}

/// A complete scrub: the damage found, and the number of chunks read.
fn scrub(store: &VolumeStore, bytes: u64) -> (Vec<afs_volume::BadData>, u64) {
    let (mut place, mut bad, mut chunks) = (Scrub::default(), Vec::new(), 0);
    loop {
        let report = now(store.scrub_step(&mut place, bytes)).unwrap();
        chunks += report.chunks;
        bad.extend(report.bad);
        if report.complete {
            return (bad, chunks);
        }
    }
}

#[test]
fn a_store_of_the_first_format_is_taken_over() {
    let disk = CrashDisk::new();
    {
        let (store, kv) = open_both(&disk, &disk).unwrap();
        let volume = now(store.create_volume(spec(0))).unwrap();
        create(&volume, ROOT, b"f").unwrap();
        make_older(&kv);
    }
    let (store, kv) = open_both(&disk, &disk).unwrap();
    let volume = store.volume(VOLUME).unwrap();
    assert_eq!(read(&volume).nodes.len(), 2);
    let clone = clone_of(&store, 7, VolumeKind::ReadOnly);
    create(&volume, ROOT, b"g").unwrap();
    assert_eq!((read(&volume).nodes.len(), read(&clone).nodes.len()), (3, 2));
    check_nothing_leaks(&store, &kv);
}

/// Deletes what the first format did not have.
fn make_older(kv: &Kv) {
    now(kv.update(|txn| {
        for table in ["volume.groups", "volume.epochs"] {
            let keys: Vec<_> = txn.range(table, .., false).map(|row| row.unwrap().0).collect();
            keys.iter().for_each(|key| txn.delete(table, key));
        }
        txn.delete("volume.meta", b"next-group");
        txn.put("volume.meta", b"format", 1u32.to_be_bytes().to_vec());
        let key = VOLUME.0.to_be_bytes();
        let mut header = txn.get("volume.headers", &key)?.unwrap().to_vec();
        header[0] = 1;
        header.truncate(header.len() - 62);
        txn.put("volume.headers", &key, header);
        Ok::<_, afs_kv::KvError>(())
    }))
    .unwrap();
}

#[test]
fn all_of_this_holds_with_data_on_drives_of_every_kind() {
    support::kinds::run_over_each("clones", &[]);
}
