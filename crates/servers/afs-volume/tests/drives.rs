//! A store with several drives: where new data go, where old ones stay, a drive that is away, removal.

#![allow(clippy::unwrap_used)]

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afs_drive::{DriveError, DriveId, MemorySegments, SegmentDrive};
use afs_kv::{Kv, MemoryMedium};
use afs_volume::{Config, Depth, SLOT_LEN, TABLES, VolumeError, VolumeStore};
use support::far_drive::FarDrive;
use support::*;

const FAR: DriveId = DriveId(7);

struct World {
    medium: MemoryMedium,
    own: MemorySegments,
    far: MemorySegments,
    away: Arc<AtomicBool>,
}

impl World {
    fn new() -> Self {
        let segments = || MemorySegments::new(1 << 30);
        Self { medium: MemoryMedium::new(), own: segments(), far: segments(), away: Arc::default() }
    }

    fn open(&self) -> VolumeStore {
        let limits = afs_kv::Config { log_bytes: 256 << 10, ..afs_kv::Config::default() };
        let env = afs_env::Parts::inline();
        let kv = Kv::open(Arc::new(self.medium.clone()), TABLES, env.clone(), limits).unwrap();
        let drive = |of: &MemorySegments| SegmentDrive::open(of.clone(), env.clone(), 4 << 20).unwrap();
        let own = Arc::new(drive(&self.own));
        let store = now(VolumeStore::open(kv, own, env.clone(), Config::default())).unwrap();
        store
            .add_drive(FAR, Arc::new(FarDrive { inner: drive(&self.far), away: self.away.clone() }))
            .unwrap();
        store
    }
}

fn content(seed: u8) -> Vec<u8> {
    vec![seed; 3 * SLOT_LEN as usize + 100]
}

#[test]
fn new_data_go_where_they_are_told_and_old_ones_stay() {
    let world = World::new();
    let store = world.open();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let [near, far] = [&b"near"[..], b"far"].map(|name| create(&volume, ROOT, name).unwrap());
    store_bytes(&volume, near, 0, &content(1), u64::MAX).unwrap();
    assert!(world.own.used() > 3 * SLOT_LEN && world.far.used() == 0);
    store.use_drive(FAR).unwrap();
    assert_eq!(store.drive_in_use(), FAR);
    let before = world.own.used();
    store_bytes(&volume, far, 0, &content(2), u64::MAX).unwrap();
    assert!(world.far.used() > 3 * SLOT_LEN && world.own.used() == before);
    assert!(store.has_chunks_on(FAR).unwrap());
    // After a start the rows tell where everything is, and a sweep of each drive leaves it.
    drop((store, volume));
    let store = world.open();
    assert_eq!(store.drive_in_use(), DriveId::OWN, "who starts a store chooses again");
    for drive in [DriveId::OWN, FAR] {
        assert_eq!(now(store.sweep_drive(drive)).unwrap().missing, []);
    }
    let volume = store.volume(spec(0).id).unwrap();
    assert!(read_bytes(&volume, near, 0, u64::MAX).unwrap() == content(1));
    assert!(read_bytes(&volume, far, 0, u64::MAX).unwrap() == content(2));
}

#[test]
fn a_drive_that_is_away_fails_its_files_alone() {
    let world = World::new();
    let store = world.open();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let [near, far, old] = [&b"near"[..], b"far", b"old"].map(|name| create(&volume, ROOT, name).unwrap());
    store_bytes(&volume, near, 0, &content(1), u64::MAX).unwrap();
    store.use_drive(FAR).unwrap();
    store_bytes(&volume, far, 0, &content(2), u64::MAX).unwrap();
    store_bytes(&volume, old, 0, &content(3), u64::MAX).unwrap();
    world.away.store(true, Ordering::Relaxed);
    let lost = read_bytes(&volume, far, 0, u64::MAX).unwrap_err();
    assert!(matches!(&lost, VolumeError::Drive(DriveError::Away { .. })), "{lost}");
    assert!(store_bytes(&volume, far, 0, &content(4), u64::MAX).is_err());
    assert!(read_bytes(&volume, near, 0, u64::MAX).unwrap() == content(1));
    // Chunks of the near drive are discarded, although some of the far one are before them in the queue.
    store.use_drive(DriveId::OWN).unwrap();
    store_bytes(&volume, old, 0, &content(5), 0).unwrap();
    let used = world.own.used();
    store_bytes(&volume, near, 0, b"short", 0).unwrap();
    run_background(&store);
    assert!(world.own.used() + 2 * SLOT_LEN < used);
    // When it is back, all is as before; what waited is discarded at the next start, or after a while.
    world.away.store(false, Ordering::Relaxed);
    assert!(read_bytes(&volume, far, 0, u64::MAX).unwrap() == content(2));
    drop((store, volume));
    let used = world.far.used();
    let store = world.open();
    run_background(&store);
    assert!(world.far.used() + 2 * SLOT_LEN < used);
}

#[test]
fn a_drive_is_removed_when_nothing_is_on_it() {
    let world = World::new();
    let store = world.open();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let file = create(&volume, ROOT, b"f").unwrap();
    store.use_drive(FAR).unwrap();
    assert!(matches!(store.remove_drive(FAR), Err(VolumeError::Busy)), "it takes new data");
    store_bytes(&volume, file, 0, &content(1), u64::MAX).unwrap();
    store.use_drive(DriveId::OWN).unwrap();
    assert!(matches!(store.remove_drive(FAR), Err(VolumeError::Busy)), "a file is on it");
    store_bytes(&volume, file, 0, &content(2), 0).unwrap();
    run_background(&store);
    store.remove_drive(FAR).unwrap();
    assert!(matches!(store.use_drive(FAR), Err(VolumeError::UnknownDrive { drive: FAR })));
    assert!(read_bytes(&volume, file, 0, u64::MAX).unwrap() == content(2));
}

#[test]
fn a_layout_names_drive_and_chunk_of_each_part_and_is_bounded() {
    let world = World::new();
    let store = world.open();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let file = create(&volume, ROOT, b"f").unwrap();
    store_bytes(&volume, file, 0, &content(1), u64::MAX).unwrap();
    store.use_drive(FAR).unwrap();
    // The second slot moves away, a hole follows the fourth one, and a few bytes stay in the index.
    store_bytes(&volume, file, SLOT_LEN, &vec![2; SLOT_LEN as usize], u64::MAX).unwrap();
    store_bytes(&volume, file, 6 * SLOT_LEN, b"few", u64::MAX).unwrap();
    let layout = |start, end, most| volume.reads(Depth::Disk).layout(file, start, end, most).unwrap();
    let all = layout(0, u64::MAX, 100);
    assert_eq!(all.end, 6 * SLOT_LEN + 3);
    let parts: Vec<_> = all
        .parts
        .iter()
        .map(|part| (part.start, part.len, part.copies.first().map(|(chunk, at)| (chunk.drive, *at))))
        .collect();
    let slot = SLOT_LEN as u32;
    let expected = [
        (0, slot, Some((DriveId::OWN, 0))),
        (SLOT_LEN, slot, Some((FAR, 0))),
        (2 * SLOT_LEN, slot, Some((DriveId::OWN, 0))),
        (3 * SLOT_LEN, 100, Some((DriveId::OWN, 0))),
        (6 * SLOT_LEN, 3, None),
    ];
    assert_eq!(parts, expected);
    // A part as a whole, whatever was asked for; and no more parts than may be.
    let few = layout(SLOT_LEN + 5, SLOT_LEN + 6, 100);
    assert_eq!((few.parts.len(), few.parts[0].start, few.end), (1, SLOT_LEN, SLOT_LEN + 6));
    let two = layout(0, u64::MAX, 2);
    assert_eq!((two.parts.len(), two.end), (2, 2 * SLOT_LEN));
    assert!(layout(4 * SLOT_LEN, 5 * SLOT_LEN, 100).parts.is_empty());
    assert_eq!(layout(99 * SLOT_LEN, u64::MAX, 100).parts, []);
    assert!(matches!(volume.reads(Depth::Disk).layout(file, 5, 4, 1), Err(VolumeError::Invalid)));
    assert!(matches!(volume.reads(Depth::Disk).layout(ROOT, 0, 4, 1), Err(VolumeError::Invalid)));
}
