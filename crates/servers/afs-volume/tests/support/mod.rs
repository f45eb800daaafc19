//! Test kit: a store over simulated disks, and futures that run inline.

#![allow(dead_code)]

pub mod clock;
pub mod crash_folder;
pub mod far_drive;
pub mod host_drive;
pub mod kinds;
pub mod members;
pub mod model;
pub mod series;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use afs_drive::SegmentDrive;
use afs_env::{EnvRef, Parts, UnixTime};
use afs_kv::Kv;
use afs_sim::crash::{CrashDisk, CrashSegments};
use afs_volume::{
    Actor, Config, DriveCount, OpenError, Placement, TABLES, Volume, VolumeError, VolumeSpec, VolumeStore,
};
use afs_wire::acl::Acl;
use afs_wire::fs::SetStatus;
use afs_wire::ids::{Fid, ViceId, VolumeId, VolumeKind, VolumeName};
use bytes::Bytes;

pub const VOLUME: VolumeId = VolumeId(536_870_912);
pub const ROOT: Fid = Fid::root(VOLUME);
pub const ALICE: Actor = Actor { id: ViceId(1001), administrator: false };
pub const ADMIN: Actor = Actor { id: ViceId(1), administrator: true };

/// Everything here runs inline, so a future is ready when it is first polled, unless it waits for a drive behind a network.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    for _ in 0..POLLS_MAX {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => return value,
            Poll::Pending => assert!(kinds::let_time_pass(), "nothing should be pending"),
        }
    }
    panic!("a drive behind a network does not answer")
}

/// About a minute of the network's time.
const POLLS_MAX: u32 = 120_000;

/// Blocking work on the caller's thread, and a clock that advances by a second each time it is read.
pub fn ticking() -> EnvRef {
    let clock = AtomicU64::new(1_000_000_000);
    let wall = move || UnixTime { secs: clock.fetch_add(1, Ordering::Relaxed), nanos: 0 };
    Parts::default().with_wall(wall).shared()
}

pub fn open(index: &CrashDisk, data: &CrashDisk) -> Result<VolumeStore, OpenError> {
    open_both(index, data).map(|(store, _)| store)
}

/// The store, and its rows.
pub fn open_both(index: &CrashDisk, data: &CrashDisk) -> Result<(VolumeStore, Kv), OpenError> {
    open_in(ticking(), index, data)
}

/// As [`open_both`], in an environment of the test's own; the rows and the drive still run their work inline.
pub fn open_in(env: EnvRef, index: &CrashDisk, data: &CrashDisk) -> Result<(VolumeStore, Kv), OpenError> {
    let limits = afs_kv::Config { log_bytes: 64 << 10, cache_bytes: 4 << 20, ..afs_kv::Config::default() };
    let failed = |error: afs_kv::OpenError| match error {
        afs_kv::OpenError::Kv(error) => OpenError::Volume(error.into()),
        other => panic!("{other}"),
    };
    let kv = Kv::open(Arc::new(index.clone()), TABLES, Parts::inline(), limits).map_err(failed)?;
    let drive = SegmentDrive::open(CrashSegments(data.clone()), Parts::inline(), 8 << 20)
        .map_err(|error| OpenError::Volume(afs_drive::DriveError::from(error).into()))?;
    Ok((now(VolumeStore::open(kv.clone(), Arc::new(drive), env, Config::default()))?, kv))
}

pub fn memory_store() -> (VolumeStore, Arc<Volume>) {
    let store = open(&CrashDisk::new(), &CrashDisk::new()).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    kinds::place_data(&store, &volume);
    (store, volume)
}

pub fn spec(max_quota: u32) -> VolumeSpec {
    VolumeSpec {
        id: VOLUME,
        name: VolumeName::new("root.cell").unwrap(),
        owner: ViceId::ADMINISTRATORS,
        kind: VolumeKind::ReadWrite,
        parent: VolumeId(0),
        max_quota,
        root: Some(Acl::of_new_volume()),
    }
}

/// Sets on how many drives data are before a store is acknowledged, 0 for the default, and over how many those of a file go round.
pub fn place(volume: &Arc<Volume>, copies: u32, width: u32) {
    let placement = Placement { copies: DriveCount::new(copies), width: DriveCount::new(width).unwrap() };
    let set = volume.edit(move |tx| {
        tx.edit_header().placement = placement;
        Ok(())
    });
    now(set).unwrap();
}

/// Runs a change and returns its result.
pub fn update<T: Send + 'static>(
    volume: &Arc<Volume>,
    change: impl FnOnce(&mut afs_volume::VolumeTx<'_, '_>) -> Result<T, VolumeError> + Send + 'static,
) -> Result<T, VolumeError> {
    now(volume.update(change))
}

pub fn create(volume: &Arc<Volume>, directory: Fid, name: &[u8]) -> Result<Fid, VolumeError> {
    let name = name.to_vec();
    update(volume, move |tx| Ok(tx.create_file(directory, &name, &SetStatus::default(), ALICE)?.object))
        .map(|object| object.fid(VOLUME))
}

pub fn make_dir(volume: &Arc<Volume>, directory: Fid, name: &[u8]) -> Result<Fid, VolumeError> {
    let name = name.to_vec();
    update(volume, move |tx| Ok(tx.make_dir(directory, &name, &SetStatus::default(), ALICE)?.object))
        .map(|object| object.fid(VOLUME))
}

pub fn store_bytes(
    volume: &Arc<Volume>,
    fid: Fid,
    position: u64,
    bytes: &[u8],
    file_length: u64,
) -> Result<(), VolumeError> {
    let mut writer = volume.write_data(position)?;
    // In pieces, as they arrive from a network.
    for piece in bytes.chunks(61_000) {
        now(writer.push(Bytes::copy_from_slice(piece)))?;
    }
    let data = now(writer.finish())?;
    let store = afs_volume::StoreData { fid, file_length, status: SetStatus::default(), expected: None };
    update(volume, move |tx| tx.store_data(store, data, ALICE).map(drop))
}

pub fn read_bytes(volume: &Arc<Volume>, fid: Fid, position: u64, len: u64) -> Result<Vec<u8>, VolumeError> {
    let mut reader = volume.read_data(fid, position, len)?;
    let expected = reader.remaining();
    let mut bytes = Vec::new();
    while let Some(part) = now(reader.next())? {
        bytes.extend_from_slice(&part);
    }
    assert_eq!(bytes.len() as u64, expected);
    Ok(bytes)
}

pub fn run_background(store: &VolumeStore) {
    while now(store.background_step()).unwrap() {}
}
