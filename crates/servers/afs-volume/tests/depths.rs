//! Reads of memory alone: their results, and the error where memory does not suffice.

#![allow(clippy::unwrap_used)]

use crate::support;

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use afs_env::{Job, Parts};
use afs_sim::crash::CrashDisk;
use afs_volume::{Depth, NewData, Volume, VolumeError};
use afs_wire::ids::Fid;
use bytes::Bytes;
use support::*;

/// The complete content, if it can be read at that depth.
fn content(volume: &Arc<Volume>, fid: Fid, depth: Depth) -> Result<Vec<u8>, VolumeError> {
    let mut reader = volume.reads(depth).data(fid, 0, u64::MAX)?;
    let mut content = Vec::new();
    while let Some(bytes) = now(reader.next())? {
        content.extend_from_slice(&bytes);
    }
    Ok(content)
}

fn in_memory(volume: &Arc<Volume>, fid: Fid) -> Option<Vec<u8>> {
    match content(volume, fid, Depth::Memory) {
        Err(VolumeError::NotInMemory) => None,
        content => Some(content.unwrap()),
    }
}

#[test]
fn recently_used_rows_are_in_memory_and_others_are_not() {
    let (index, data) = (CrashDisk::new(), CrashDisk::new());
    let store = open(&index, &data).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let root = Fid::root(VOLUME);
    let small = create(&volume, root, b"small").unwrap();
    let large = create(&volume, root, b"large").unwrap();
    store_bytes(&volume, small, 0, b"small content", 13).unwrap();
    store_bytes(&volume, large, 0, &[7; 100_000], 100_000).unwrap();
    assert_eq!(in_memory(&volume, small).unwrap(), b"small content");
    drop((volume, store));

    // Opening checkpoints the log, so that nothing is in memory.
    let store = open(&index, &data).unwrap();
    let volume = store.volume(VOLUME).unwrap();
    for fid in [root, small, large] {
        assert!(matches!(volume.reads(Depth::Memory).fetch(fid), Err(VolumeError::NotInMemory)), "{fid}");
        let found = content(&volume, fid, Depth::Disk).unwrap();
        volume.reads(Depth::Memory).fetch(fid).unwrap();
        // Chunks of a drive are not cached.
        assert_eq!(in_memory(&volume, fid), (fid != large).then_some(found), "{fid}");
    }
    let part = volume.reads(Depth::Memory).data(small, 6, 3).and_then(|mut part| now(part.next()));
    assert_eq!(part.unwrap().unwrap(), b"con"[..]);

    store_bytes(&volume, small, 0, b"other content", 13).unwrap();
    create(&volume, root, b"another").unwrap();
    for fid in [root, small] {
        let there = content(&volume, fid, Depth::Disk).unwrap();
        assert_eq!(in_memory(&volume, fid).unwrap(), there, "{fid}");
    }
    assert_eq!(in_memory(&volume, small).unwrap(), b"other content");
}

type Jobs = Arc<Mutex<Vec<Job>>>;

/// How often the future handed work to a thread that may wait for a disk, before it was ready.
fn hand_overs(mut future: Pin<&mut dyn Future<Output = Result<(), VolumeError>>>, jobs: &Jobs) -> usize {
    for count in 0.. {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            done.unwrap();
            return count;
        }
        let job = jobs.lock().unwrap().pop().unwrap();
        job();
    }
    unreachable!("it is ready some time")
}

fn bytes_at(volume: &Arc<Volume>, position: u64) -> NewData {
    let mut writer = volume.write_data(position).unwrap();
    now(writer.push(Bytes::from_static(b"part"))).unwrap();
    now(writer.finish()).unwrap()
}

#[test]
fn slots_to_be_written_anew_are_looked_for_where_a_disk_may_be_waited_for() {
    let (index, data) = (CrashDisk::new(), CrashDisk::new());
    let store = open(&index, &data).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let file = create(&volume, Fid::root(VOLUME), b"file").unwrap();
    store_bytes(&volume, file, 0, &[7; 100_000], 100_000).unwrap();
    drop((volume, store));

    let jobs = Jobs::default();
    let kept = jobs.clone();
    let env = Parts::default().with_blocking(move |job| kept.lock().unwrap().push(job)).shared();
    let (store, _) = open_in(env, &index, &data).unwrap();
    let volume = store.volume(VOLUME).unwrap();
    let (part, behind) = (bytes_at(&volume, 500), bytes_at(&volume, 4 << 20));
    assert_eq!(
        hand_overs(pin!(volume.compact_for(file, &part)), &jobs),
        2,
        "for the record and for the slot"
    );
    assert_eq!(hand_overs(pin!(volume.compact_for(file, &part)), &jobs), 1, "the record is known by now");
    assert_eq!(hand_overs(pin!(volume.compact_for(file, &behind)), &jobs), 0, "no slot is there");
    store_bytes(&volume, file, 500, b"other", 100_000).unwrap();
    assert_eq!(hand_overs(pin!(volume.compact_for(file, &part)), &jobs), 0, "the slot was written lately");
}
