//! What no row names: it stays on the drive for a day, while there is room.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used)]

use crate::support;

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use afs_sim::crash::{CrashDisk, Rng};
use afs_volume::{KEPT_FOR, VolumeStore};
use afs_wire::ids::Fid;
use support::clock::Clock;
use support::*;

const BYTES: &[u8] = &[7; 100_000];

/// A store whose index is an older copy, before a file; the newer one, and the drive.
struct Scene {
    older: CrashDisk,
    newer: CrashDisk,
    data: CrashDisk,
    file: Fid,
}

fn scene() -> Scene {
    let (newer, data) = (CrashDisk::new(), CrashDisk::new());
    let store = open(&newer, &data).unwrap();
    now(store.create_volume(spec(0))).unwrap();
    let older = newer.image(&mut Rng(1));
    let volume = store.volume(VOLUME).unwrap();
    let file = create(&volume, ROOT, b"kept").unwrap();
    store_bytes(&volume, file, 0, BYTES, u64::MAX).unwrap();
    Scene { older, newer, data, file }
}

impl Scene {
    /// What the file has, if the index that names it takes the place of the older one.
    fn put_right(&self) -> Option<Vec<u8>> {
        let store = open(&self.newer, &self.data).unwrap();
        let volume = store.volume(VOLUME).unwrap();
        read_bytes(&volume, self.file, 0, u64::MAX).ok()
    }
}

fn is_over(sweep: &mut Pin<&mut impl Future>) -> bool {
    matches!(sweep.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
}

fn opened(scene: &Scene, clock: &Clock) -> VolumeStore {
    open_in(clock.env(), &scene.older, &scene.data).unwrap().0
}

#[test]
fn what_an_older_index_does_not_name_is_there_for_a_day() {
    let (scene, clock) = (scene(), Clock::default());
    let store = opened(&scene, &clock);
    let mut sweep = pin!(store.sweep_when_due());
    assert!(!is_over(&mut sweep));
    clock.advance(KEPT_FOR - Duration::from_secs(1));
    assert!(!is_over(&mut sweep));
    assert_eq!(scene.put_right().as_deref(), Some(BYTES));
    clock.advance(Duration::from_secs(120));
    assert!(is_over(&mut sweep));
    assert_eq!(scene.put_right(), None);
}

#[test]
fn it_goes_at_once_when_the_drive_is_nearly_full() {
    let (scene, clock) = (scene(), Clock::default());
    let store = opened(&scene, &clock);
    scene.data.set_capacity(Some(2_000_000));
    let mut sweep = pin!(store.sweep_when_due());
    assert!(!is_over(&mut sweep));
    scene.data.set_capacity(Some(110_000));
    clock.advance(Duration::from_secs(60));
    assert!(is_over(&mut sweep));
    assert!(scene.data.used() < 10_000, "{}", scene.data.used());
}
