//! A store whose new data go to a bucket: stored, read after a start, discarded, swept.

#![allow(clippy::unwrap_used)]

use crate::support;

use std::sync::Arc;

use afs_bucket::{BucketDrive, MemoryBucket, OwnerId};
use afs_drive::{DriveId, MemorySegments, SegmentDrive};
use afs_kv::{Kv, MemoryMedium};
use afs_volume::{Config, SLOT_LEN, TABLES, VolumeStore};
use support::*;

const BUCKET: DriveId = DriveId(3);

struct World {
    medium: MemoryMedium,
    own: MemorySegments,
    bucket: MemoryBucket,
}

impl World {
    fn open(&self) -> VolumeStore {
        let limits = afs_kv::Config { log_bytes: 256 << 10, ..afs_kv::Config::default() };
        let env = afs_env::Parts::inline();
        let kv = Kv::open(Arc::new(self.medium.clone()), TABLES, env.clone(), limits).unwrap();
        let own = Arc::new(SegmentDrive::open(self.own.clone(), env.clone(), 4 << 20).unwrap());
        let store = now(VolumeStore::open(kv, own, env.clone(), Config::default())).unwrap();
        let (bucket, config) = (Arc::new(self.bucket.clone()), afs_bucket::Config::default());
        let drive = now(BucketDrive::create(bucket, OwnerId([4; 16]), env, config)).unwrap();
        store.add_drive(BUCKET, Arc::new(drive)).unwrap();
        store.use_drive(BUCKET).unwrap();
        store
    }

    fn packs(&self) -> usize {
        self.bucket.objects().iter().filter(|(key, _)| key.starts_with("packs/")).count()
    }
}

fn content(seed: u8) -> Vec<u8> {
    vec![seed; 10 * SLOT_LEN as usize + 100]
}

#[test]
fn files_are_stored_in_a_bucket() {
    let segments = MemorySegments::new(1 << 30);
    let world = World { medium: MemoryMedium::new(), own: segments, bucket: MemoryBucket::default() };
    let store = world.open();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let [old, kept] = [&b"old"[..], b"kept"].map(|name| create(&volume, ROOT, name).unwrap());
    store_bytes(&volume, old, 0, &content(1), u64::MAX).unwrap();
    store_bytes(&volume, kept, 0, &content(2), u64::MAX).unwrap();
    assert_eq!((world.packs(), world.own.used()), (4, 0), "two full packs, and two rests at the syncs");
    drop((store, volume));
    let store = world.open();
    let volume = store.volume(spec(0).id).unwrap();
    for (file, seed) in [(old, 1), (kept, 2)] {
        assert!(read_bytes(&volume, file, 0, u64::MAX).unwrap() == content(seed));
    }
    let report = now(store.sweep_drive(BUCKET)).unwrap();
    assert_eq!((report.missing.len(), report.segments, report.removed), (0, 4, 0));
    store_bytes(&volume, old, 0, &content(3), 0).unwrap();
    run_background(&store);
    assert_eq!(world.packs(), 4, "the packs of the old bytes died with them");
    assert!(read_bytes(&volume, old, 0, u64::MAX).unwrap() == content(3));
    assert!(read_bytes(&volume, kept, 0, u64::MAX).unwrap() == content(2));
    for file in [old, kept] {
        store_bytes(&volume, file, 0, b"short", 0).unwrap();
    }
    run_background(&store);
    assert_eq!(world.packs(), 0);
}
