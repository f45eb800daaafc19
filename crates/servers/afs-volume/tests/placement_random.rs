//! Random stores that wait for two drives, while drives are away, lose their power, or are late, and the file server loses its own:
//! what was acknowledged is read after the loss of any one drive.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use afs_drive::{DriveId, LostDrive};
use afs_kv::Kv;
use afs_sim::crash::{CrashDisk, Rng, seeds};
use afs_volume::{NewData, Placement, Rebuild, SLOT_LEN, StoreData, Volume, VolumeError, VolumeStore};
use afs_wire::fs::SetStatus;
use afs_wire::ids::Fid;
use bytes::Bytes;
use support::clock::Clock;
use support::host_drive::Host;
use support::members::check_nothing_leaks;
use support::*;

const HOSTS: [DriveId; 3] = [DriveId(3), DriveId(4), DriveId(5)];

/// A file as it was acknowledged.
#[derive(Clone, Default)]
struct Acknowledged {
    name: Vec<u8>,
    bytes: Vec<u8>,
    /// Whether all of it was stored, or copied, while no drive had failed.
    is_full: bool,
}

struct World {
    rng: Rng,
    clock: Clock,
    /// Of the file server: index and own drive.
    disk: CrashDisk,
    hosts: Vec<Host>,
    placement: Placement,
    store: VolumeStore,
    kv: Kv,
    volume: Arc<Volume>,
    files: BTreeMap<Fid, Acknowledged>,
    /// The store that a power failure may have interrupted.
    interrupted: Option<(Fid, Vec<u8>)>,
    /// Whether a drive has failed, or may be thought to be away.
    troubled: bool,
    names: u32,
}

type Opened = (VolumeStore, Kv);

fn open_on(clock: &Clock, disk: &CrashDisk, hosts: &[Host], lost: Option<usize>) -> Option<Opened> {
    let (store, kv) = open_in(clock.env(), disk, disk).ok()?;
    for (number, (id, host)) in HOSTS.into_iter().zip(hosts).enumerate() {
        let drive = if lost == Some(number) { Arc::new(LostDrive) } else { host.drive(disk) };
        store.add_drive(id, drive).ok()?;
    }
    store.use_drives(&HOSTS[..hosts.len()]).ok()?;
    Some((store, kv))
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let (clock, disk) = (Clock::default(), CrashDisk::new());
        let hosts: Vec<_> = (0..2 + rng.below(2)).map(|_| Host::new()).collect();
        let (store, kv) = open_on(&clock, &disk, &hosts, None).unwrap();
        let volume = now(store.create_volume(spec(0))).unwrap();
        place(&volume, 2, 1 + rng.below(hosts.len() as u64) as u32);
        let placement = volume.header().placement;
        let (files, interrupted, troubled, names) = (BTreeMap::new(), None, false, 0);
        Self { rng, clock, disk, hosts, placement, store, kv, volume, files, interrupted, troubled, names }
    }

    fn step(&mut self) {
        match self.rng.below(20) {
            0..=2 => self.create(),
            3..=11 => self.store(),
            12..=14 => self.trouble(),
            15 => self.settle(),
            16 => self.remove(),
            17 => self.rebuild(),
            _ => {
                for _ in 0..self.rng.below(4) {
                    drop(now(self.store.background_step()));
                }
                // What was written anew meanwhile lacks what a store would lack.
                self.note_trouble();
            }
        }
    }

    fn note_trouble(&mut self) {
        if self.troubled {
            self.files.values_mut().for_each(|file| file.is_full = false);
        }
    }

    fn pick(&mut self) -> Option<Fid> {
        let known: Vec<_> = self.files.keys().copied().collect();
        (!known.is_empty()).then(|| known[self.rng.below(known.len() as u64) as usize])
    }

    fn create(&mut self) {
        self.names += 1;
        let name = format!("f{}", self.names).into_bytes();
        if let Ok(fid) = create(&self.volume, ROOT, &name) {
            self.files.insert(fid, Acknowledged { name, bytes: Vec::new(), is_full: true });
        }
    }

    fn remove(&mut self) {
        let (Some(fid), true) = (self.pick(), self.files.len() > 3) else { return };
        if let Some(file) = self.files.remove(&fid) {
            drop(update(&self.volume, move |tx| tx.remove_file(ROOT, &file.name, ALICE)));
        }
    }

    /// One of the drives fails, or its host.
    fn trouble(&mut self) {
        let host = self.hosts[self.rng.below(self.hosts.len() as u64) as usize].clone();
        self.troubled = true;
        match self.rng.below(3) {
            0 => host.set_away(true),
            _ => host.crash(&mut self.rng),
        }
    }

    /// All drives are there again, and known to be.
    fn settle(&mut self) {
        self.hosts.iter().for_each(|host| host.set_away(false));
        self.clock.advance(Duration::from_secs(61));
        self.troubled = false;
    }

    /// All chunks get their copies.
    fn rebuild(&mut self) {
        self.settle();
        let (mut position, mut missing) = (Rebuild::default(), 0);
        loop {
            match now(self.store.rebuild_step(&mut position, 300_000)) {
                Ok(done) => {
                    missing += done.missing;
                    if done.complete {
                        break;
                    }
                }
                Err(_) => return,
            }
        }
        if missing == 0 {
            self.files.values_mut().for_each(|file| file.is_full = true);
        }
    }

    fn store(&mut self) {
        let Some(fid) = self.pick() else { return };
        let mut after = self.files[&fid].bytes.clone();
        // Mostly over the end of one of the first mebibytes, so that several drives have a part.
        let end = (SLOT_LEN * self.rng.below(4)) as usize;
        let position = end.saturating_sub(self.rng.below(40_000) as usize);
        let len = if self.rng.chance(20) { 100 } else { 20_000 + self.rng.below(50_000) as usize };
        let (first, step) = (self.rng.next(), self.rng.next() | 1);
        let bytes: Vec<u8> =
            (0..len as u64).map(|at| (first.wrapping_add(at.wrapping_mul(step)) >> 32) as u8 | 1).collect();
        after.resize(after.len().max(position + len), 0);
        after[position..position + len].copy_from_slice(&bytes);
        self.interrupted = Some((fid, after.clone()));
        let stored = self.write(position as u64, &bytes).and_then(|data| {
            let store =
                StoreData { fid, file_length: u64::MAX, status: SetStatus::default(), expected: None };
            update(&self.volume, move |tx| tx.store_data(store, data, ALICE))
        });
        let troubled = self.troubled;
        self.files.entry(fid).and_modify(|file| file.is_full &= !troubled);
        if stored.is_ok() {
            self.files.entry(fid).and_modify(|file| file.bytes = after);
            self.interrupted = None;
        }
    }

    /// Bytes at the drives, one of which may fail meanwhile.
    fn write(&mut self, position: u64, bytes: &[u8]) -> Result<NewData, VolumeError> {
        let mut writer = self.volume.write_data(position)?;
        let fails_at = self.rng.below(4 * bytes.len() as u64) as usize;
        for (number, piece) in bytes.chunks(61_000).enumerate() {
            now(writer.push(Bytes::copy_from_slice(piece)))?;
            if (number * 61_000..(number + 1) * 61_000).contains(&fails_at) {
                self.trouble();
            }
        }
        now(writer.finish())
    }

    /// The power of all hosts fails, and one drive may be lost with it.
    fn after_power_failure(&mut self, lost: Option<usize>) {
        let disk = self.disk.image(&mut self.rng);
        let hosts: Vec<_> = self.hosts.iter().map(|host| host.image(&mut self.rng)).collect();
        let (store, _kv) = open_on(&self.clock, &disk, &hosts, lost).unwrap();
        let volume = store.volume(VOLUME).unwrap();
        for (fid, file) in &self.files {
            if lost.is_some() && !file.is_full {
                continue;
            }
            let found = read_bytes(&volume, *fid, 0, u64::MAX)
                .unwrap_or_else(|error| panic!("{fid:?} cannot be read without {lost:?}: {error}"));
            let stored = self.interrupted.as_ref().is_some_and(|(at, after)| at == fid && *after == found);
            assert!(found == file.bytes || stored, "{fid:?} is another without {lost:?}");
        }
    }

    fn check(&mut self) {
        for lost in [None].into_iter().chain((0..self.hosts.len()).map(Some)) {
            self.after_power_failure(lost);
        }
    }

    /// The power of the file server alone fails.
    fn restart(&mut self) {
        self.disk = self.disk.image(&mut self.rng);
        let (store, kv) = open_on(&self.clock, &self.disk, &self.hosts, None).unwrap();
        (self.volume, self.kv) = (store.volume(VOLUME).unwrap(), kv);
        self.store = store;
        assert_eq!(self.volume.header().placement, self.placement);
        self.settle();
        for drive in &HOSTS[..self.hosts.len()] {
            assert_eq!(now(self.store.sweep_drive(*drive)).unwrap().missing, []);
        }
        // What was interrupted is there or not; it may lack copies.
        if let Some((fid, after)) = self.interrupted.take()
            && read_bytes(&self.volume, fid, 0, u64::MAX).is_ok_and(|found| found == after)
        {
            self.files.entry(fid).and_modify(|file| {
                file.bytes = after;
                file.is_full = false;
            });
        }
    }
}

fn live(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..3 {
        let fuse = 1 + world.rng.below(400);
        world.disk.crash_after(fuse);
        for _ in 0..60 {
            if world.disk.is_dead() {
                break;
            }
            world.step();
        }
        world.check();
        world.restart();
        world.check();
    }
    run_background(&world.store);
    world.rebuild();
    assert!(world.files.values().all(|file| file.is_full));
    world.check();
    let World { store, kv, volume, .. } = world;
    drop(volume);
    check_nothing_leaks(&store, &kv);
    for drive in HOSTS {
        assert!(now(store.sweep_drive(drive)).is_ok_and(|swept| swept.live == 0) || drive == HOSTS[2]);
    }
}

#[test]
fn nothing_acknowledged_is_lost_with_any_one_drive() {
    for seed in seeds(30) {
        let result = std::panic::catch_unwind(|| live(seed));
        assert!(result.is_ok(), "seed {seed}");
    }
}
