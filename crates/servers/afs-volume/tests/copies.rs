//! Copies of chunks on several drives: reads while a drive is away or has damage, frees, drains, power failures.

#![allow(clippy::unwrap_used)]

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afs_drive::{DriveError, DriveId, FileSegments, LostDrive, MemorySegments, SegmentDrive, SegmentStore};
use afs_env::Parts;
use afs_kv::{Kv, MemoryMedium};
use afs_sim::crash::{CrashDisk, CrashFolder, Rng};
use afs_volume::{
    CloneSpec, Config, Depth, LaidOut, Rebuild, Rebuilt, Relocation, SLOT_LEN, Scrub, ScrubReport, TABLES,
    Volume, VolumeError, VolumeStore,
};
use afs_wire::ids::{Fid, VolumeId, VolumeKind, VolumeName};
use support::far_drive::FarDrive;
use support::members::check_nothing_leaks;
use support::*;

const FAR: DriveId = DriveId(3);
const THIRD: DriveId = DriveId(4);
const ALL: [DriveId; 3] = [DriveId::OWN, FAR, THIRD];
const MIB: usize = SLOT_LEN as usize;

struct World {
    medium: MemoryMedium,
    segments: [MemorySegments; 3],
    away: [Arc<AtomicBool>; 3],
}

impl World {
    fn new() -> Self {
        let segments = [(); 3].map(|()| MemorySegments::new(1 << 30));
        Self { medium: MemoryMedium::new(), segments, away: Default::default() }
    }

    fn kv(&self) -> Kv {
        Kv::open(Arc::new(self.medium.clone()), TABLES, Parts::inline(), afs_kv::Config::default()).unwrap()
    }

    fn open_on(&self, kv: Kv) -> VolumeStore {
        let [own, far, third] = [0, 1, 2].map(|at| {
            let inner = SegmentDrive::open(self.segments[at].clone(), Parts::inline(), 4 << 20).unwrap();
            Arc::new(FarDrive { inner, away: self.away[at].clone() })
        });
        let store = now(VolumeStore::open(kv, own, Parts::inline(), Config::default())).unwrap();
        store.add_drive(FAR, far).unwrap();
        store.add_drive(THIRD, third).unwrap();
        store
    }

    fn open(&self) -> VolumeStore {
        self.open_on(self.kv())
    }

    fn away(&self, at: usize, is_away: bool) {
        self.away[at].store(is_away, Ordering::Relaxed);
    }

    fn used(&self) -> [u64; 3] {
        [0, 1, 2].map(|at| self.segments[at].used())
    }
}

fn content(mebibytes: usize) -> Vec<u8> {
    (0..mebibytes).flat_map(|number| vec![number as u8 + 1; MIB]).collect()
}

fn file(volume: &Arc<Volume>, name: &[u8], mebibytes: usize) -> Fid {
    let file = create(volume, ROOT, name).unwrap();
    store_bytes(volume, file, 0, &content(mebibytes), u64::MAX).unwrap();
    file
}

fn clone_of(store: &VolumeStore) -> Arc<Volume> {
    let name = VolumeName::new("clone").unwrap();
    let spec = CloneSpec { id: VolumeId(7), name, kind: VolumeKind::ReadOnly, snapshot: false };
    now(store.clone_volume(VOLUME, spec)).unwrap()
}

/// A complete pass.
fn rebuild(store: &VolumeStore) -> Rebuilt {
    let (mut position, mut all) = (Rebuild::default(), Rebuilt::default());
    while !all.complete {
        let done = now(store.rebuild_step(&mut position, 3 << 20)).unwrap();
        all.complete = done.complete;
        all.copies += done.copies;
        all.bytes += done.bytes;
        all.missing += done.missing;
    }
    all
}

fn chunks_on(store: &VolumeStore) -> [u64; 3] {
    ALL.map(|drive| store.contents_of_drive(drive).unwrap().chunks)
}

#[test]
fn each_chunk_gets_its_copies_once_and_they_go_with_it() {
    let world = World::new();
    let kv = world.kv();
    let store = world.open_on(kv.clone());
    let volume = now(store.create_volume(spec(0))).unwrap();
    let one = file(&volume, b"f", 5);
    assert_eq!(rebuild(&store).copies, 0, "one drive");
    store.use_drives(&ALL).unwrap();
    let done = rebuild(&store);
    assert_eq!((done.copies, done.bytes, done.missing), (10, 10 * SLOT_LEN, 0));
    assert_eq!(rebuild(&store), Rebuilt { complete: true, ..Rebuilt::default() });
    assert_eq!(chunks_on(&store), [5, 5, 5]);
    let clone = clone_of(&store);
    store_bytes(&volume, one, 0, b"short", 0).unwrap();
    run_background(&store);
    assert_eq!(chunks_on(&store), [5, 5, 5], "the clone has them");
    assert!(read_bytes(&clone, Fid { volume: VolumeId(7), ..one }, 0, u64::MAX).unwrap() == content(5));
    drop((volume, clone));
    check_nothing_leaks(&store, &kv);
    assert_eq!(world.used(), [0, 0, 0]);
    for bad in [&[][..], &[FAR, FAR], &[FAR, THIRD, DriveId::OWN, DriveId(9)]] {
        assert!(matches!(store.use_drives(bad), Err(VolumeError::Invalid)));
    }
    assert!(store.use_drives(&[DriveId(9)]).is_err());
}

#[test]
fn a_file_is_read_as_long_as_one_drive_has_it() {
    let world = World::new();
    let store = world.open();
    let volume = now(store.create_volume(spec(0))).unwrap();
    store.use_drives(&[FAR, THIRD]).unwrap();
    let one = file(&volume, b"f", 3);
    rebuild(&store);
    assert_eq!(chunks_on(&store), [0, 3, 3]);
    let read = |volume: &Arc<Volume>| read_bytes(volume, one, 0, u64::MAX);
    world.away(1, true);
    assert!(read(&volume).unwrap() == content(3));
    // Also after a restart, which knows of the copies from the rows alone.
    drop((store, volume));
    let store = world.open();
    let volume = store.volume(VOLUME).unwrap();
    assert!(read(&volume).unwrap() == content(3));
    world.away(2, true);
    let lost = read(&volume).unwrap_err();
    assert!(matches!(lost, VolumeError::Drive(DriveError::Away { .. })), "{lost}");
    world.away(1, false);
    assert!(read(&volume).unwrap() == content(3), "a drive that was away is the last resort");
    world.away(2, false);
    // Damage of a chunk is passed over in the same way.
    let segment = world.segments[1].list().unwrap()[0];
    world.segments[1].write_at(segment, 5000, b"damage").unwrap();
    drop((store, volume));
    let store = world.open();
    assert!(read(&store.volume(VOLUME).unwrap()).unwrap() == content(3));
}

/// A complete pass of a scrub.
fn scrub(store: &VolumeStore) -> ScrubReport {
    now(store.scrub_step(&mut Scrub::default(), u64::MAX)).unwrap()
}

#[test]
fn a_scrub_passes_over_a_drive_that_is_away_and_repairs_damage_from_a_copy() {
    let world = World::new();
    let kv = world.kv();
    let store = world.open_on(kv.clone());
    let volume = now(store.create_volume(spec(0))).unwrap();
    store.use_drives(&[FAR, THIRD]).unwrap();
    let one = file(&volume, b"f", 3);
    // The newest state has a part of the first chunk only, so no replica of it could replace the chunk.
    let clone = clone_of(&store);
    store_bytes(&volume, one, 9000, &[7; 20_000], u64::MAX).unwrap();
    rebuild(&store);
    let sound = scrub(&store);
    assert_eq!((sound.bad.len(), sound.unread), (0, 0));
    world.away(1, true);
    let away = scrub(&store);
    assert_eq!((away.bad.len(), away.unread), (0, sound.chunks), "nothing is known of these");
    assert_eq!((away.chunks, away.bytes), (0, 0));
    world.away(1, false);
    let segment = world.segments[1].list().unwrap()[0];
    world.segments[1].write_at(segment, 5000, b"damage").unwrap();
    let damaged = scrub(&store).bad;
    assert!(!damaged.is_empty());
    // Without its copies a chunk cannot be repaired.
    world.away(2, true);
    assert!(matches!(now(store.repair_from_copy(&damaged[0])), Err(VolumeError::Invalid)));
    world.away(2, false);
    for bad in &damaged {
        // The second row of a chunk finds it replaced.
        assert!(matches!(now(store.repair_from_copy(bad)), Ok(()) | Err(VolumeError::Busy)));
    }
    assert_eq!(scrub(&store).bad, []);
    world.away(2, true);
    assert!(
        read_bytes(&clone, Fid { volume: VolumeId(7), ..one }, 0, u64::MAX).unwrap() == content(3),
        "from the drive itself"
    );
    world.away(2, false);
    drop((volume, clone));
    check_nothing_leaks(&store, &kv);
    assert_eq!(world.used(), [0, 0, 0]);
}

#[test]
fn a_drive_that_is_away_gets_its_copies_when_it_is_back() {
    let world = World::new();
    let store = world.open();
    let volume = now(store.create_volume(spec(0))).unwrap();
    store.use_drives(&[DriveId::OWN, FAR]).unwrap();
    file(&volume, b"f", 4);
    world.away(1, true);
    let done = rebuild(&store);
    assert_eq!((done.copies, done.missing), (0, 4));
    // Another drive takes its place, and copies of what was there remain garbage of nobody.
    store.use_drives(&[DriveId::OWN, THIRD]).unwrap();
    assert_eq!(rebuild(&store).copies, 4);
    assert_eq!(chunks_on(&store), [4, 0, 4]);
}

#[test]
fn a_drive_that_is_lost_is_drained_from_its_copies_and_what_had_none_stays() {
    let world = World::new();
    let store = world.open();
    let volume = now(store.create_volume(spec(0))).unwrap();
    store.use_drives(&[FAR]).unwrap();
    let [one, gone] = [b"f", b"g"].map(|name| file(&volume, name, 3));
    assert!(matches!(store.replace_drive(FAR, Arc::new(LostDrive)), Err(VolumeError::Busy)));
    store.use_drives(&[FAR, THIRD]).unwrap();
    rebuild(&store);
    let late = file(&volume, b"late", 2);
    store.use_drives(&[DriveId::OWN]).unwrap();
    world.away(1, true);
    now(volume.update(move |tx| tx.remove_file(ROOT, b"g", ADMIN).map(drop))).unwrap();
    run_background(&store);
    assert_eq!(chunks_on(&store), [0, 8, 6], "discards wait for the drive");
    store.replace_drive(FAR, Arc::new(LostDrive)).unwrap();
    run_background(&store);
    assert_eq!(chunks_on(&store), [0, 5, 3], "and do no longer");
    assert!(read_bytes(&volume, one, 0, u64::MAX).unwrap() == content(3));
    let lost = read_bytes(&volume, late, 0, u64::MAX).unwrap_err();
    assert!(matches!(lost, VolumeError::Drive(DriveError::Unreadable { .. })), "{lost}");
    let (mut relocation, mut all) = (Relocation::of_drive(FAR, DriveId::OWN), 0);
    loop {
        let done = now(store.relocate_step(&mut relocation, 1)).unwrap();
        all += done.bad;
        if done.complete {
            break;
        }
    }
    run_background(&store);
    assert_eq!((all, chunks_on(&store)), (2, [3, 2, 3]), "two chunks had no copy");
    assert!(matches!(store.remove_drive(FAR), Err(VolumeError::Busy)));
    let bad = scrub(&store).bad;
    assert!(bad.iter().all(|bad| bad.vnode == late.vnode) && bad.len() == 2, "the scrub names the file");
    now(volume.update(move |tx| tx.remove_file(ROOT, b"late", ADMIN).map(drop))).unwrap();
    run_background(&store);
    store.remove_drive(FAR).unwrap();
    assert!(read_bytes(&volume, one, 0, u64::MAX).unwrap() == content(3));
    assert!(read_bytes(&volume, gone, 0, u64::MAX).is_err());
    assert!(store.replace_drive(FAR, Arc::new(LostDrive)).is_err(), "it is not there");
}

#[test]
fn a_drained_drive_has_neither_chunks_nor_copies() {
    let world = World::new();
    let kv = world.kv();
    let store = world.open_on(kv.clone());
    let volume = now(store.create_volume(spec(0))).unwrap();
    store.use_drives(&[DriveId::OWN, FAR]).unwrap();
    let one = file(&volume, b"f", 3);
    store.use_drives(&[FAR, DriveId::OWN]).unwrap();
    let two = file(&volume, b"g", 2);
    rebuild(&store);
    assert_eq!(chunks_on(&store), [5, 5, 0]);
    // Two chunks of FAR have a copy on the own disk already.
    store.use_drives(&[DriveId::OWN, THIRD]).unwrap();
    let mut relocation = Relocation::of_drive(FAR, DriveId::OWN);
    while !now(store.relocate_step(&mut relocation, 1)).unwrap().complete {}
    run_background(&store);
    assert_eq!(chunks_on(&store), [5, 0, 0]);
    assert_eq!(rebuild(&store).copies, 5);
    store.remove_drive(FAR).unwrap();
    world.away(0, true);
    for (fid, mebibytes) in [(one, 3), (two, 2)] {
        assert!(read_bytes(&volume, fid, 0, u64::MAX).unwrap() == content(mebibytes));
    }
    world.away(0, false);
    drop(volume);
    check_nothing_leaks(&store, &kv);
    assert_eq!(world.used(), [0, 0, 0]);
}

/// A store with two drives on one disk: one machine has one power supply.
fn on_disk(disk: &CrashDisk) -> Option<(VolumeStore, Kv)> {
    let (store, kv) = open_both(disk, disk).ok()?;
    let far = SegmentDrive::open(FileSegments::over(CrashFolder(disk.clone())), Parts::inline(), 4 << 20);
    store.add_drive(FAR, Arc::new(far.ok()?)).ok()?;
    store.use_drives(&[DriveId::OWN, FAR]).ok()?;
    Some((store, kv))
}

/// Makes copies, then deletes a file and what nothing needs any longer; false if the power failed.
fn work(store: &VolumeStore) -> bool {
    let mut position = Rebuild::default();
    loop {
        match now(store.rebuild_step(&mut position, 1)) {
            Ok(done) if done.complete => break,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    let volume = store.volume(VOLUME).unwrap();
    drop(update(&volume, |tx| tx.remove_file(ROOT, b"gone", ALICE)));
    while let Ok(worked) = now(store.background_step()) {
        if !worked {
            return store.contents_of_drive(DriveId::OWN).is_ok_and(|contents| contents.chunks == 2);
        }
    }
    false
}

#[test]
fn a_power_failure_at_any_point_leaves_each_chunk_with_all_of_its_copies_or_none() {
    let bytes = |number: u8| vec![number + 1; 20_000];
    let names = [&b"f"[..], b"g", b"gone"];
    let mut completed = false;
    let mut fuse = 0;
    while !completed {
        fuse += 1;
        let disk = CrashDisk::new();
        let (store, kv) = on_disk(&disk).unwrap();
        let volume = now(store.create_volume(spec(0))).unwrap();
        let files = names.map(|name| create(&volume, ROOT, name).unwrap());
        for (number, file) in (0..).zip(files) {
            store_bytes(&volume, file, 0, &bytes(number), u64::MAX).unwrap();
        }
        drop((store, kv, volume));
        disk.crash_after(fuse);
        completed = on_disk(&disk).is_some_and(|(store, _)| work(&store));
        let disk = disk.image(&mut Rng(fuse));
        let (store, kv) = on_disk(&disk).unwrap();
        for drive in [DriveId::OWN, FAR] {
            assert_eq!(now(store.sweep_drive(drive)).unwrap().missing, [], "after {fuse} changes");
        }
        work(&store);
        let [own, far] = [DriveId::OWN, FAR].map(|drive| store.contents_of_drive(drive).unwrap());
        assert_eq!((own.chunks, far.chunks), (2, 2), "after {fuse} changes");
        let volume = store.volume(VOLUME).unwrap();
        for (number, file) in (0..2).zip(files) {
            assert!(read_bytes(&volume, file, 0, u64::MAX).unwrap() == bytes(number));
        }
        drop(volume);
        check_nothing_leaks(&store, &kv);
        assert_eq!(now(store.sweep_drive(FAR)).unwrap().live, 0, "after {fuse} changes");
    }
    assert!(fuse > 10, "the power failed before the work was over");
}

#[test]
fn a_layout_names_all_places_of_a_chunk() {
    let world = World::new();
    let store = world.open();
    let volume = now(store.create_volume(spec(0))).unwrap();
    store.use_drives(&ALL).unwrap();
    let one = file(&volume, b"f", 2);
    let places = || {
        let layout = volume.reads(Depth::Disk).layout(one, 0, u64::MAX, 100).unwrap();
        let of_part = |part: LaidOut| part.copies.into_iter().map(|(at, _)| at.drive).collect::<Vec<_>>();
        layout.parts.into_iter().map(of_part).collect::<Vec<_>>()
    };
    assert_eq!(places(), [[DriveId::OWN]; 2].map(Vec::from), "there are no copies yet");
    rebuild(&store);
    assert_eq!(places(), [ALL; 2].map(Vec::from));
    let read = volume.reads(Depth::Disk).layout(one, 0, 1, 100).unwrap();
    let lens: Vec<_> = read.parts[0].copies.iter().map(|(at, offset)| (at.chunk.len, *offset)).collect();
    assert_eq!(lens, [(MIB as u32, 0); 3]);
}
