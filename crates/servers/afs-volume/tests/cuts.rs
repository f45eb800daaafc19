//! Large cuts of files: visible at once, completed in bounded steps, beside clones, restores and power
//! failures.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_kv::Kv;
use afs_sim::crash::{CrashDisk, Rng, seeds};
use afs_volume::{CloneSpec, RestoredHeader, SLOT_LEN, StoreData, Volume, VolumeError, VolumeStore};
use afs_wire::fs::SetStatus;
use afs_wire::ids::{Fid, VolumeId, VolumeKind, VolumeName};
use bytes::Bytes;
use support::kinds::Drives;
use support::members::{check_nothing_leaks, records};
use support::*;

const NAME: &[u8] = b"f";

/// Bytes at the start of a slot that are a chunk on a drive, and the one of them that is looked at beside the first.
const CHUNK: u64 = 20_000;
const WITHIN: u64 = 10_000;

/// A file with a single byte or a chunk of the same bytes at the starts of slots: the first byte of each, and one within the chunk.
#[derive(Clone, Debug, Default, PartialEq)]
struct Content {
    length: u64,
    bytes: BTreeMap<u64, (u8, u8)>,
}

impl Content {
    /// To a length that ends with a slot, or one byte behind.
    fn cut(&mut self, length: u64) {
        self.length = self.length.min(length);
        self.bytes.retain(|slot, _| slot * SLOT_LEN < length);
        if let Some((_, within)) = self.bytes.get_mut(&(length / SLOT_LEN)) {
            *within = 0;
        }
    }

    fn put(&mut self, slot: u64, byte: u8, count: u64) {
        let (first, within) = self.bytes.entry(slot).or_default();
        *first = byte;
        if count > 1 {
            *within = byte;
        }
        self.length = self.length.max(slot * SLOT_LEN + count);
    }

    /// Its charge in KiB.
    fn charge(&self) -> u64 {
        let of_slot = |(_, within): &(u8, u8)| if *within == 0 { 1 } else { CHUNK.div_ceil(1024) };
        self.bytes.values().map(of_slot).sum::<u64>().max(1)
    }
}

/// Stores the same byte at the starts of some slots, so many times, in one change, after truncating the file.
fn store(
    volume: &Arc<Volume>,
    fid: Fid,
    file_length: u64,
    slots: impl Iterator<Item = u64>,
    (byte, count): (u8, u64),
) -> Result<(), VolumeError> {
    let mut slots = slots.peekable();
    let mut writer = volume.write_data(slots.peek().unwrap_or(&0) * SLOT_LEN)?;
    for slot in slots {
        now(writer.skip_to(slot * SLOT_LEN))?;
        now(writer.push(vec![byte; count as usize].into()))?;
    }
    let data = now(writer.finish())?;
    now(volume.compact_for(fid, &data))?;
    let store = StoreData { fid, file_length, status: SetStatus::default(), expected: None };
    update(volume, move |tx| tx.store_data(store, data, ALICE).map(drop))
}

fn cut(volume: &Arc<Volume>, fid: Fid, length: u64) -> Result<(), VolumeError> {
    store_bytes(volume, fid, 0, b"", length)
}

fn rows(kv: &Kv, table: &str) -> usize {
    kv.snapshot().range(table, .., false).map(Result::unwrap).count()
}

fn charged(volume: &Arc<Volume>) -> u64 {
    volume.header().blocks_used - 2
}

fn read_content(volume: &Arc<Volume>) -> Option<Content> {
    let record = records(volume).into_iter().find(|record| !record.is_directory())?;
    let fid = record.fid(volume.id());
    let mut content = Content { length: record.length, bytes: BTreeMap::new() };
    for slot in 0..record.length.div_ceil(SLOT_LEN) {
        let at = |from: u64| read_bytes(volume, fid, slot * SLOT_LEN + from, 1).unwrap();
        // A chunk has the same byte at both.
        let first = at(0)[0];
        if first != 0 {
            content.bytes.insert(slot, (first, at(WITHIN).first().copied().unwrap_or_default()));
        }
    }
    Some(content)
}

#[test]
fn a_cut_of_many_slots_is_one_small_change_and_goes_in_bounded_steps() {
    let disk = CrashDisk::new();
    let (volumes, kv) = open_both(&disk, &disk).unwrap();
    let volume = now(volumes.create_volume(spec(0))).unwrap();
    let file = create(&volume, ROOT, NAME).unwrap();
    for part in 0..4 {
        store(&volume, file, u64::MAX, part * 1000..(part + 1) * 1000, (7, 1)).unwrap();
    }
    run_background(&volumes);
    assert_eq!((rows(&kv, "volume.slots"), charged(&volume)), (4000, 4000));
    cut(&volume, file, 100 * SLOT_LEN).unwrap();
    // The rows still exist, and are no longer visible, however the file grows.
    assert_eq!((rows(&kv, "volume.slots"), rows(&kv, "volume.cuts")), (4000, 1));
    assert!((100..=100 << 10).contains(&charged(&volume)));
    store_bytes(&volume, file, 4000 * SLOT_LEN, b"", u64::MAX).unwrap();
    store(&volume, file, u64::MAX, 2000..2003, (9, 1)).unwrap();
    let mut expected =
        Content { length: 4000 * SLOT_LEN, bytes: (0..100).map(|slot| (slot, (7, 0))).collect() };
    (2000..2003).for_each(|slot| expected.put(slot, 9, 1));
    assert_eq!(read_content(&volume), Some(expected.clone()));
    // Each step deletes a bounded part.
    let mut left = rows(&kv, "volume.slots");
    while now(volumes.background_step()).unwrap() {
        let now = rows(&kv, "volume.slots");
        assert!(left - now <= 256, "{left} {now}");
        left = now;
    }
    assert_eq!((left, rows(&kv, "volume.cuts"), charged(&volume)), (103, 0, 103));
    assert_eq!(read_content(&volume), Some(expected));
    check_nothing_leaks(&volumes, &kv);
}

#[test]
fn a_file_without_holes_is_charged_rightly_from_the_moment_it_is_cut() {
    let (volumes, volume) = memory_store();
    let file = create(&volume, ROOT, NAME).unwrap();
    let slots = 140u64;
    store_bytes(&volume, file, 0, &vec![5; (slots * SLOT_LEN) as usize], u64::MAX).unwrap();
    assert_eq!(charged(&volume), slots << 10);
    cut(&volume, file, 70 * SLOT_LEN + 1000).unwrap();
    assert_eq!(charged(&volume), (70 << 10) + 1);
    store_bytes(&volume, file, 100 * SLOT_LEN, &[6; 5000], u64::MAX).unwrap();
    assert_eq!(charged(&volume), (70 << 10) + 6);
    run_background(&volumes);
    assert_eq!(charged(&volume), (70 << 10) + 6);
    assert_eq!(read_bytes(&volume, file, 80 * SLOT_LEN, 9).unwrap(), [0; 9]);
    assert_eq!(read_bytes(&volume, file, 100 * SLOT_LEN + 4999, 2).unwrap(), [6]);
}

#[test]
fn zeros_over_many_slots_are_a_hole_at_once() {
    let disk = CrashDisk::new();
    let (volumes, kv) = open_both(&disk, &disk).unwrap();
    let volume = now(volumes.create_volume(spec(0))).unwrap();
    let file = create(&volume, ROOT, NAME).unwrap();
    store(&volume, file, u64::MAX, 0..300, (7, 1)).unwrap();
    let mut writer = volume.write_data(100 * SLOT_LEN).unwrap();
    let zeros = Bytes::from(vec![0; SLOT_LEN as usize]);
    for _ in 100..190 {
        now(writer.push(zeros.clone())).unwrap();
    }
    let data = now(writer.finish()).unwrap();
    let change = StoreData { fid: file, file_length: u64::MAX, status: SetStatus::default(), expected: None };
    update(&volume, move |tx| tx.store_data(change, data, ALICE).map(drop)).unwrap();
    assert_eq!(rows(&kv, "volume.slots"), 300);
    let mut expected = Content::default();
    (0..100).chain(190..300).for_each(|slot| expected.put(slot, 7, 1));
    assert_eq!(read_content(&volume), Some(expected.clone()));
    run_background(&volumes);
    assert_eq!((rows(&kv, "volume.slots"), charged(&volume)), (210, 210));
    assert_eq!(read_content(&volume), Some(expected));
}

#[test]
fn more_cuts_than_a_file_may_have_are_worked_off_first() {
    let (volumes, volume) = memory_store();
    let file = create(&volume, ROOT, NAME).unwrap();
    let mut expected = Content::default();
    for round in 1..100 {
        // Each cut begins behind the last one, so that none replaces another.
        let end = round * 70 + 70;
        store(&volume, file, u64::MAX, (round - 1) * 70..end, (round as u8, 1)).unwrap();
        ((round - 1) * 70..end).for_each(|slot| expected.put(slot, round as u8, 1));
        let kept = (round * 70 + 1) * SLOT_LEN;
        store_bytes(&volume, file, (end + 80) * SLOT_LEN, b"", u64::MAX).unwrap();
        store(&volume, file, u64::MAX, end..end + 80, (1, 1)).unwrap();
        store(&volume, file, kept, std::iter::empty(), (0, 1)).unwrap();
        expected.cut(kept);
    }
    assert_eq!(read_content(&volume), Some(expected.clone()));
    run_background(&volumes);
    assert_eq!((read_content(&volume), charged(&volume)), (Some(expected.clone()), expected.charge()));
}

type Members = BTreeMap<VolumeId, Option<Content>>;

struct World {
    rng: Rng,
    disk: CrashDisk,
    /// Of the data, with the same power; none if they are on the store's own.
    drives: Drives,
    /// Their number.
    count: usize,
    store: VolumeStore,
    kv: Kv,
    members: Members,
    /// The volumes if the operation interrupted by a power failure was completed.
    after: Option<Members>,
    next_id: u32,
    /// Whether the read-write volume was made from a clone, which may have been charged during a cut.
    converted: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        // Every second one has data on one or two drives of other kinds.
        let count = (seed % 2 * (1 + seed / 2 % 2)) as usize;
        let drives = if count > 0 { Drives::of_seed(seed / 2, count) } else { Drives::none() };
        let disk = CrashDisk::new();
        let (store, kv) = open_both(&disk, &disk).unwrap();
        drives.add_to(&store, &disk);
        now(store.create_volume(spec(0))).unwrap();
        let members = Members::from([(VOLUME, None)]);
        let (after, next_id, converted) = (None, 100, false);
        Self { rng: Rng(seed), disk, drives, count, store, kv, members, after, next_id, converted }
    }

    fn volume(&self, id: VolumeId) -> Arc<Volume> {
        self.store.volume(id).unwrap()
    }

    fn outcome<T>(&mut self, after: Members, answer: Result<T, VolumeError>) {
        match answer {
            Ok(_) => (self.members, self.after) = (after, None),
            Err(_) if self.disk.is_dead() => self.after = Some(after),
            Err(error) => panic!("{error:?}"),
        }
    }

    fn step(&mut self) {
        match self.rng.below(20) {
            0..=9 => self.change(),
            10 => self.clone_one(),
            11 => self.reclone(),
            12 => self.delete(),
            13 => self.convert(),
            14 => self.restore(),
            _ => {
                for _ in 0..self.rng.below(3) {
                    drop(now(self.store.background_step()));
                }
            }
        }
    }

    fn change(&mut self) {
        let mut after = self.members.clone();
        let Some(content) = after.get_mut(&VOLUME) else { return };
        let volume = self.volume(VOLUME);
        let Some(content) = content else {
            after.insert(VOLUME, Some(Content::default()));
            let made = create(&volume, ROOT, NAME);
            return self.outcome(after, made);
        };
        let found = records(&volume).into_iter().find(|record| !record.is_directory()).unwrap();
        let fid = found.fid(VOLUME);
        let (slot, byte) = (self.rng.below(500), self.rng.next() as u8 | 1);
        // What is not on the store's own drive is in chunks, half of the time, and few.
        let is_chunk = self.count > 0 && self.rng.chance(50);
        let (count, slots) = if is_chunk { (CHUNK, 12) } else { (1, 300) };
        let answer = match self.rng.below(10) {
            0..=3 => {
                let slots = slot..slot + 1 + self.rng.below(slots);
                slots.clone().for_each(|slot| content.put(slot, byte, count));
                store(&volume, fid, u64::MAX, slots, (byte, count))
            }
            4 => {
                content.put(slot, byte, count);
                store(&volume, fid, u64::MAX, slot..slot + 1, (byte, count))
            }
            5 => {
                content.length = content.length.max(slot * SLOT_LEN);
                store_bytes(&volume, fid, slot * SLOT_LEN, b"", u64::MAX)
            }
            6..=8 => {
                let length = slot * SLOT_LEN + self.rng.below(2);
                content.cut(length);
                // Now and then bytes come with the cut.
                if self.rng.chance(30) {
                    let behind = slot + self.rng.below(200);
                    content.put(behind, byte, count);
                    store(&volume, fid, length, behind..behind + 1, (byte, count))
                } else {
                    cut(&volume, fid, length)
                }
            }
            _ => {
                after.insert(VOLUME, None);
                update(&volume, |tx| tx.remove_file(ROOT, NAME, ALICE).map(drop))
            }
        };
        self.outcome(after, answer);
    }

    fn any(&mut self, wanted: impl Fn(&VolumeId) -> bool) -> Option<VolumeId> {
        let ids: Vec<_> = self.members.keys().copied().filter(wanted).collect();
        (!ids.is_empty()).then(|| ids[self.rng.below(ids.len() as u64) as usize])
    }

    fn clone_one(&mut self) {
        let Some(source) = self.any(|_| true).filter(|_| self.members.len() < 5) else { return };
        self.next_id += 1;
        let id = VolumeId(self.next_id);
        let name = VolumeName::new(&format!("clone{id}")).unwrap();
        let spec = CloneSpec { id, name, kind: VolumeKind::Backup, snapshot: true };
        let mut after = self.members.clone();
        after.insert(id, self.members[&source].clone());
        let made = now(self.store.clone_volume(source, spec));
        self.outcome(after, made);
    }

    fn reclone(&mut self) {
        let Some(clone) = self.any(|id| *id != VOLUME) else { return };
        if !self.members.contains_key(&VOLUME) {
            return;
        }
        let mut after = self.members.clone();
        after.insert(clone, self.members[&VOLUME].clone());
        let answer = now(self.store.reclone_volume(VOLUME, clone));
        self.outcome(after, answer);
    }

    fn delete(&mut self) {
        let Some(id) = self.any(|_| true).filter(|_| self.members.len() > 1) else { return };
        if id == VOLUME && self.rng.chance(70) {
            return;
        }
        let mut after = self.members.clone();
        after.remove(&id);
        let answer = now(self.store.delete_volume(id));
        self.outcome(after, answer);
    }

    fn convert(&mut self) {
        let Some(from) = self.any(|id| *id != VOLUME) else { return };
        if self.members.contains_key(&VOLUME) {
            return;
        }
        self.converted = true;
        let mut after = self.members.clone();
        let content = after.remove(&from).unwrap();
        after.insert(VOLUME, content);
        let name = VolumeName::new("converted").unwrap();
        let answer = now(self.store.convert_to_read_write(from, VOLUME, name));
        self.outcome(after, answer);
    }

    /// A restore that keeps everything, or that is abandoned.
    fn restore(&mut self) {
        let Some(volume) = self.store.volume(VOLUME) else { return };
        let Ok(mut restore) = now(volume.begin_restore(false)) else {
            assert!(self.disk.is_dead());
            return;
        };
        for record in records(&volume) {
            if now(restore.keep(record.vnode)).is_err() {
                assert!(self.disk.is_dead());
                return;
            }
            drop(now(self.store.background_step()));
        }
        if self.rng.chance(30) {
            return drop(restore);
        }
        let answer = now(restore.commit(RestoredHeader::default()));
        self.outcome(self.members.clone(), answer);
    }

    fn found(&self) -> Members {
        self.store.volumes().iter().map(|volume| (volume.id(), read_content(volume))).collect()
    }

    fn check(&self) {
        assert!(self.found() == self.members, "a volume is not what it should be");
        for (id, content) in &self.members {
            let at_least = content.as_ref().map_or(0, Content::charge);
            let charged = charged(&self.volume(*id));
            assert!(charged >= at_least, "{id} has {at_least} KiB and is charged with {charged}");
        }
    }

    /// When nothing is left to do, the charge is exact.
    fn check_charge(&self) {
        if let Some(content) = self.members.get(&VOLUME).filter(|_| !self.converted) {
            let expected = content.as_ref().map_or(0, Content::charge);
            assert_eq!(charged(&self.volume(VOLUME)), expected);
            assert_eq!(rows(&self.kv, "volume.cuts"), 0);
        }
    }

    /// Also on the drives, after another start.
    fn check_nothing_leaks(&mut self) {
        check_nothing_leaks(&self.store, &self.kv);
        self.reopen();
        assert_eq!(self.drives.sweep(&self.store), 0, "chunks are left");
        assert!(self.drives.are_empty(), "something is left on a drive");
    }

    fn reopen(&mut self) {
        (self.store, self.kv) = open_both(&CrashDisk::new(), &CrashDisk::new()).unwrap();
        (self.store, self.kv) = open_both(&self.disk, &self.disk).unwrap();
        self.drives.add_to(&self.store, &self.disk);
    }

    fn recover(&mut self) {
        self.disk = self.disk.image(&mut self.rng);
        self.drives.crash(&mut self.rng);
        self.reopen();
        for volume in self.store.volumes() {
            let header = volume.header();
            if header.destroy && header.kind == VolumeKind::ReadWrite && header.restored_from.0 == 0 {
                now(self.store.delete_volume(volume.id())).unwrap();
            }
        }
        let (found, after) = (self.found(), self.after.take());
        assert!(found == self.members || Some(&found) == after.as_ref(), "neither before nor after");
        self.members = found;
    }
}

#[test]
fn truncations_beside_clones_restores_and_restarts_leave_the_state_of_the_model() {
    for seed in seeds(4) {
        let result = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            for step in 0..150 {
                world.step();
                if step % 5 == 4 {
                    world.check();
                }
                if step % 30 == 29 {
                    world.reopen();
                    run_background(&world.store);
                    world.check();
                    world.check_charge();
                }
            }
            run_background(&world.store);
            world.check();
            world.check_nothing_leaks();
        });
        assert!(result.is_ok(), "seed {seed}");
    }
}

#[test]
fn power_cuts_in_the_middle_of_cuts_lose_and_revive_nothing() {
    for seed in seeds(4) {
        let result = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            for _ in 0..6 {
                let fuse = 1 + world.rng.below(250);
                world.disk.crash_after(fuse);
                while !world.disk.is_dead() {
                    world.step();
                }
                world.recover();
                world.check();
                assert_eq!(now(world.store.sweep()).unwrap().missing, []);
            }
            run_background(&world.store);
            world.check();
            world.check_charge();
            world.check_nothing_leaks();
        });
        assert!(result.is_ok(), "seed {seed}");
    }
}
