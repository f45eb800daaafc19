//! Moving data between drives: contents, clones and versions stay; changes, damage, drives that are away, power failures.

#![allow(clippy::unwrap_used)]

use crate::support;

use std::ops::Range;
use std::sync::Arc;

use afs_drive::{
    BoxFuture, ChunkId, ChunkRef, Drive, DriveError, DriveId, FileSegments, LiveChunks, MemorySegments,
    SegmentDrive, SweepReport, Usage,
};
use afs_env::Parts;
use afs_kv::{Kv, MemoryMedium};
use afs_sim::crash::{CrashDisk, CrashFolder, Rng};
use afs_volume::{
    CloneSpec, Config, DriveContents, Relocated, Relocation, SLOT_LEN, TABLES, Volume, VolumeError,
    VolumeStore,
};
use afs_wire::ids::{DataVersion, Fid, VolumeId, VolumeKind, VolumeName};
use bytes::Bytes;
use parking_lot::Mutex;
use support::members::check_nothing_leaks;
use support::*;

const FAR: DriveId = DriveId(3);
const MIB: usize = SLOT_LEN as usize;

/// Something that happens during the next read of a drive.
type Meanwhile = Arc<Mutex<Option<Box<dyn FnOnce() -> Result<(), DriveError> + Send>>>>;

/// A drive during whose reads something happens.
struct Eventful {
    inner: SegmentDrive<MemorySegments>,
    meanwhile: Meanwhile,
}

impl Drive for Eventful {
    fn write(&self, data: Bytes) -> BoxFuture<Result<ChunkRef, DriveError>> {
        self.inner.write(data)
    }

    fn read(&self, chunk: ChunkRef, range: Range<u32>) -> BoxFuture<Result<Bytes, DriveError>> {
        let event = self.meanwhile.lock().take();
        match event.map_or(Ok(()), |event| event()) {
            Ok(()) => self.inner.read(chunk, range),
            Err(error) => Box::pin(async move { Err(error) }),
        }
    }

    fn sync(&self, written: &[ChunkRef]) -> BoxFuture<Result<(), DriveError>> {
        self.inner.sync(written)
    }

    fn discard(&self, chunks: Vec<ChunkRef>) -> BoxFuture<Result<(), DriveError>> {
        self.inner.discard(chunks)
    }

    fn continue_after(&self, last: ChunkId) {
        self.inner.continue_after(last);
    }

    fn usage(&self) -> Result<Usage, DriveError> {
        self.inner.usage()
    }

    fn sweep(&self, live: Arc<dyn LiveChunks>) -> BoxFuture<Result<SweepReport, DriveError>> {
        self.inner.sweep(live)
    }
}

struct World {
    store: VolumeStore,
    kv: Kv,
    volume: Arc<Volume>,
    own: MemorySegments,
    far: MemorySegments,
    meanwhile: Meanwhile,
}

impl World {
    fn new() -> Self {
        let [own, far] = [(); 2].map(|()| MemorySegments::new(1 << 30));
        let (env, meanwhile) = (Parts::inline(), Meanwhile::default());
        let medium = Arc::new(MemoryMedium::new());
        let kv = Kv::open(medium, TABLES, env.clone(), afs_kv::Config::default()).unwrap();
        let drive = |of: &MemorySegments| SegmentDrive::open(of.clone(), env.clone(), 4 << 20).unwrap();
        let eventful = Eventful { inner: drive(&own), meanwhile: meanwhile.clone() };
        let opened = VolumeStore::open(kv.clone(), Arc::new(eventful), env.clone(), Config::default());
        let store = now(opened).unwrap();
        store.add_drive(FAR, Arc::new(drive(&far))).unwrap();
        let volume = now(store.create_volume(spec(0))).unwrap();
        Self { store, kv, volume, own, far, meanwhile }
    }

    /// A file with some mebibytes, each of one byte.
    fn file(&self, name: &[u8], mebibytes: usize) -> (Fid, Vec<u8>) {
        let file = create(&self.volume, ROOT, name).unwrap();
        let content = content(mebibytes);
        store_bytes(&self.volume, file, 0, &content, u64::MAX).unwrap();
        (file, content)
    }

    fn read(&self, file: Fid) -> Vec<u8> {
        let volume = self.store.volume(file.volume).unwrap();
        read_bytes(&volume, file, 0, u64::MAX).unwrap()
    }

    fn clone_of(&self, id: u32) -> VolumeId {
        let name = VolumeName::new(&format!("clone{id}")).unwrap();
        let spec = CloneSpec { id: VolumeId(id), name, kind: VolumeKind::ReadOnly, snapshot: false };
        now(self.store.clone_volume(VOLUME, spec)).unwrap().id()
    }
}

fn content(mebibytes: usize) -> Vec<u8> {
    (0..mebibytes).flat_map(|number| vec![number as u8 + 1; MIB]).collect()
}

/// A complete pass.
fn relocate(store: &VolumeStore, mut relocation: Relocation) -> Relocated {
    let mut all = Relocated::default();
    while !all.complete {
        let done = now(store.relocate_step(&mut relocation, 3 << 20)).unwrap();
        all.complete = done.complete;
        all.chunks += done.chunks;
        all.bytes += done.bytes;
        all.changed += done.changed;
        all.bad += done.bad;
    }
    all
}

#[test]
fn all_data_of_a_drive_move_once_for_all_clones_and_nothing_else_changes() {
    let world = World::new();
    let volume = &world.volume;
    let (file, mut bytes) = world.file(b"f", 5);
    let (cut, _) = world.file(b"cut", 70);
    let (gone, gone_bytes) = world.file(b"gone", 2);
    let small = create(volume, ROOT, b"small").unwrap();
    store_bytes(volume, small, 0, b"in its row", u64::MAX).unwrap();
    let clone = world.clone_of(7);
    let of_clone = |fid: Fid| Fid { volume: clone, ..fid };
    let (before, cut_before) = (bytes.clone(), world.read(cut));
    store_bytes(volume, file, 100, &[99; 20_000], u64::MAX).unwrap();
    bytes[100..20_100].fill(99);
    // The remainder gets another content id, and the rest is deleted in the background.
    store_bytes(volume, cut, 0, &[98; 10], MIB as u64).unwrap();
    update(volume, |tx| tx.remove_file(ROOT, b"gone", ALICE)).unwrap();
    let version = |fid: Fid| volume.fetch(fid).unwrap().data_version;
    let (versions, header) = ([file, cut, small].map(version), volume.header());
    let done = relocate(&world.store, Relocation::of_drive(DriveId::OWN, FAR));
    // Each chunk once, whoever shares it: those of the clone, and the one that was stored since.
    assert_eq!((done.chunks, done.changed, done.bad), (5 + 70 + 2 + 1, 0, 0));
    run_background(&world.store);
    assert!(!world.store.has_chunks_on(DriveId::OWN).unwrap());
    assert_eq!(world.store.contents_of_drive(DriveId::OWN).unwrap(), DriveContents::default());
    assert_eq!(world.store.contents_of_drive(FAR).unwrap().chunks, done.chunks);
    assert_eq!(world.own.used(), 0);
    assert!(world.read(file) == bytes && world.read(of_clone(file)) == before);
    assert!(world.read(cut)[..10] == [98; 10] && world.read(of_clone(cut)) == cut_before);
    assert!(world.read(of_clone(gone)) == gone_bytes && world.read(small) == b"in its row");
    assert_eq!([file, cut, small].map(version), versions);
    assert_eq!(
        (volume.header().blocks_used, volume.header().update_counter),
        (header.blocks_used, header.update_counter)
    );
    // A second pass has nothing to do.
    assert_eq!(relocate(&world.store, Relocation::of_drive(DriveId::OWN, FAR)).bytes, 0);
    check_nothing_leaks(&world.store, &world.kv);
    assert_eq!(now(world.store.sweep_drive(FAR)).unwrap().live, 0);
}

#[test]
fn one_file_moves_alone_and_back() {
    let world = World::new();
    let (file, bytes) = world.file(b"f", 9);
    let (other, _) = world.file(b"other", 3);
    let clone = world.clone_of(7);
    let done = relocate(&world.store, Relocation::of_file(file, FAR));
    assert_eq!((done.chunks, done.bytes), (9, 9 * SLOT_LEN));
    run_background(&world.store);
    assert_eq!(world.store.contents_of_drive(DriveId::OWN).unwrap().chunks, 3);
    assert!(world.read(file) == bytes && world.read(Fid { volume: clone, ..file }) == bytes);
    assert_eq!(relocate(&world.store, Relocation::of_file(file, FAR)).bytes, 0);
    assert_eq!(relocate(&world.store, Relocation::of_file(file, DriveId::OWN)).chunks, 9);
    assert!(world.read(file) == bytes && world.read(other) == content(3));
    let mut lost = Relocation::of_file(Fid { unique: afs_wire::ids::Uniquifier(99), ..file }, FAR);
    assert!(matches!(now(world.store.relocate_step(&mut lost, 1)), Err(VolumeError::NoVnode)));
}

#[test]
fn a_store_during_the_copy_wins_and_the_copy_is_discarded() {
    let world = World::new();
    let (file, _) = world.file(b"f", 1);
    let volume = world.volume.clone();
    *world.meanwhile.lock() = Some(Box::new(move || {
        store_bytes(&volume, file, 0, &[77; 1 << 20], u64::MAX).unwrap();
        Ok(())
    }));
    let done = relocate(&world.store, Relocation::of_drive(DriveId::OWN, FAR));
    assert_eq!((done.chunks, done.changed), (0, 1));
    assert_eq!(world.far.used(), 0, "the copy is discarded");
    assert!(world.read(file) == [77; 1 << 20]);
    assert_eq!(world.volume.fetch(file).unwrap().data_version, DataVersion(2));
    // A chunk that a store has overwritten in part is moved.
    let volume = world.volume.clone();
    *world.meanwhile.lock() = Some(Box::new(move || {
        store_bytes(&volume, file, 5, b"part", u64::MAX).unwrap();
        Ok(())
    }));
    let done = relocate(&world.store, Relocation::of_drive(DriveId::OWN, FAR));
    assert_eq!((done.chunks, done.changed), (1, 0));
    assert_eq!(&world.read(file)[3..11], b"MMpartMM");
    run_background(&world.store);
    assert_eq!(world.own.used(), 0);
}

#[test]
fn a_reader_in_the_middle_keeps_its_chunks() {
    let world = World::new();
    let (file, bytes) = world.file(b"f", 12);
    let mut reader = world.volume.read_data(file, 0, u64::MAX).unwrap();
    let mut read = now(reader.next()).unwrap().unwrap().to_vec();
    relocate(&world.store, Relocation::of_drive(DriveId::OWN, FAR));
    run_background(&world.store);
    while let Some(part) = now(reader.next()).unwrap() {
        read.extend_from_slice(&part);
    }
    assert!(read == bytes);
    drop(reader);
    run_background(&world.store);
    assert_eq!(world.own.used(), 0);
}

#[test]
fn damage_stays_where_it_is_and_a_drive_that_is_away_delays_the_step() {
    let world = World::new();
    let (file, bytes) = world.file(b"f", 3);
    let fails = |error: DriveError| -> Option<Box<dyn FnOnce() -> Result<(), DriveError> + Send>> {
        Some(Box::new(move || Err(error)))
    };
    let mut relocation = Relocation::of_drive(DriveId::OWN, FAR);
    *world.meanwhile.lock() = fails(DriveError::Away { drive: "own".into(), why: "test".into() });
    let away = now(world.store.relocate_step(&mut relocation, 8 << 20));
    assert!(matches!(away, Err(VolumeError::Drive(DriveError::Away { .. }))));
    assert_eq!(world.far.used(), 0);
    *world.meanwhile.lock() = fails(DriveError::Damaged { chunk: ChunkId::MIN });
    let done = now(world.store.relocate_step(&mut relocation, 8 << 20)).unwrap();
    assert_eq!((done.chunks, done.bad), (2, 1), "the step is repeated from its beginning");
    assert!(world.read(file) == bytes);
    run_background(&world.store);
    assert_eq!(
        world.store.contents_of_drive(DriveId::OWN).unwrap(),
        DriveContents { chunks: 1, bytes: SLOT_LEN }
    );
}

/// A store with two drives on one disk: one machine has one power supply.
fn on_disk(disk: &CrashDisk) -> Option<VolumeStore> {
    let store = support::open(disk, disk).ok()?;
    let far = SegmentDrive::open(FileSegments::over(CrashFolder(disk.clone())), Parts::inline(), 4 << 20);
    store.add_drive(FAR, Arc::new(far.ok()?)).ok()?;
    Some(store)
}

/// Passes until nothing is left; false if the power failed.
fn drain(store: &VolumeStore) -> bool {
    let mut relocation = Relocation::of_drive(DriveId::OWN, FAR);
    loop {
        match now(store.relocate_step(&mut relocation, 1)) {
            Ok(done) if done.complete => break,
            Ok(_) => drop(now(store.background_step())),
            Err(_) => return false,
        }
    }
    while let Ok(worked) = now(store.background_step()) {
        if !worked {
            return !store.has_chunks_on(DriveId::OWN).unwrap_or(true);
        }
    }
    false
}

const FILES: u8 = 4;

/// What a file has, in the volume or its clone.
fn held(number: u8, id: VolumeId) -> Vec<u8> {
    let byte = if number == 1 && id == VOLUME { 55 } else { number + 1 };
    vec![byte; 20_000]
}

/// Some files that a volume and its clone share, apart from one that changed since.
fn prepared() -> (CrashDisk, Vec<Fid>) {
    let disk = CrashDisk::new();
    let store = on_disk(&disk).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let clone = VolumeId(7);
    let store_one = |number, file, id| store_bytes(&volume, file, 0, &held(number, id), 0).unwrap();
    let made = |number| {
        let file = create(&volume, ROOT, format!("f{number}").as_bytes()).unwrap();
        store_one(number, file, clone);
        file
    };
    let files: Vec<Fid> = (0..FILES).map(made).collect();
    let name = VolumeName::new("clone").unwrap();
    let spec = CloneSpec { id: clone, name, kind: VolumeKind::ReadOnly, snapshot: false };
    now(store.clone_volume(VOLUME, spec)).unwrap();
    store_one(1, files[1], VOLUME);
    run_background(&store);
    (disk, files)
}

fn check(store: &VolumeStore, files: &[Fid]) {
    for id in [VOLUME, VolumeId(7)] {
        let volume = store.volume(id).unwrap();
        for (number, file) in (0..FILES).zip(files) {
            let read = read_bytes(&volume, Fid { volume: id, ..*file }, 0, u64::MAX);
            assert!(read.unwrap() == held(number, id), "file {number} of {id}");
        }
    }
}

#[test]
fn a_power_failure_at_any_point_loses_nothing_and_the_move_is_resumed() {
    let mut completed = false;
    let mut fuse = 0;
    while !completed {
        fuse += 1;
        let (disk, files) = prepared();
        disk.crash_after(fuse);
        completed = on_disk(&disk).is_some_and(|store| drain(&store));
        let disk = disk.image(&mut Rng(fuse));
        let store = on_disk(&disk).unwrap();
        check(&store, &files);
        for drive in [DriveId::OWN, FAR] {
            assert_eq!(now(store.sweep_drive(drive)).unwrap().missing, [], "after {fuse} changes");
        }
        assert!(drain(&store), "after {fuse} changes");
        check(&store, &files);
        assert_eq!(store.contents_of_drive(FAR).unwrap().chunks, u64::from(FILES) + 1);
    }
    assert!(fuse > 10, "the power failed before the move was over");
}
