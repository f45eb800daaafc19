//! Random clones, reclones, snapshots, deletions, and restores that are committed, abandoned and forgotten,
//! with restarts and power failures between them, compared with a model: each volume has its expected
//! content, and in the end nothing is left.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_drive::{DriveId, FileSegments, SegmentDrive};
use afs_env::Parts;
use afs_kv::Kv;
use afs_sim::crash::{CrashDisk, CrashFolder, Rng, seeds};
use afs_volume::{
    CloneSpec, Object, Rebuild, Relocation, Rename, Replacing, RestoredHeader, Volume, VolumeError,
    VolumeStore,
};
use afs_wire::fs::{FileKind, SetStatus};
use afs_wire::ids::{Fid, VnodeId, VolumeId, VolumeKind, VolumeName};
use support::kinds::Drives;
use support::members::{self, check_nothing_leaks, read, records};
use support::model::Model;
use support::*;

type Members = BTreeMap<VolumeId, Model>;

struct World {
    rng: Rng,
    disk: CrashDisk,
    store: VolumeStore,
    kv: Kv,
    members: Members,
    /// The volumes if the operation interrupted by a power failure was completed.
    after: Option<Members>,
    /// Whether a change of the read-write volume was interrupted: only the volume tells whether it was made.
    changing: bool,
    next_id: u32,
    far: Option<Drives>,
}

impl World {
    /// With a second drive of some kind, or on the same disk.
    fn new(seed: u64, far: Option<Drives>) -> Self {
        let disk = CrashDisk::new();
        let (store, kv) = open_with_copies(&disk, far.as_ref());
        let volume = now(store.create_volume(spec(0))).unwrap();
        if seed % 2 == 1 {
            place(&volume, 2, 2);
        }
        let members = Members::from([(VOLUME, Model::new())]);
        let rng = Rng(seed);
        Self { rng, disk, store, kv, members, after: None, changing: false, next_id: 100, far }
    }

    fn volume(&self, id: VolumeId) -> Arc<Volume> {
        self.store.volume(id).unwrap_or_else(|| panic!("volume {id} is missing"))
    }

    fn pick(&mut self, wanted: impl Fn(&VolumeId) -> bool) -> Option<VolumeId> {
        let ids: Vec<_> = self.members.keys().copied().filter(wanted).collect();
        (!ids.is_empty()).then(|| ids[self.rng.below(ids.len() as u64) as usize])
    }

    fn new_id(&mut self) -> VolumeId {
        self.next_id += 1;
        VolumeId(self.next_id)
    }

    /// Records the result of an operation.
    fn outcome<T>(&mut self, after: Members, answer: Result<T, VolumeError>) {
        match answer {
            Ok(_) => (self.members, self.after) = (after, None),
            Err(_) if self.disk.is_dead() => self.after = Some(after),
            Err(error) => panic!("{error:?}"),
        }
    }

    fn step(&mut self) {
        match self.rng.below(38) {
            0..=11 => self.change(),
            12..=14 => self.clone_one(),
            15..=16 => self.reclone(),
            17..=18 => self.delete(),
            19..=20 => self.convert(),
            21..=23 => self.restore(),
            24..=27 => self.relocate(),
            28..=31 => self.copy(),
            _ => {
                for _ in 0..self.rng.below(4) {
                    drop(now(self.store.background_step()));
                }
            }
        }
    }

    /// A change by a client.
    fn change(&mut self) {
        let Some(mut model) = self.members.get(&VOLUME).cloned() else { return };
        let volume = self.volume(VOLUME);
        let directories = model.of_kind(FileKind::Directory);
        let directory = directories[self.rng.below(directories.len() as u64) as usize];
        let name = format!("n{}", self.rng.below(8)).into_bytes();
        self.changing = true;
        match self.rng.below(9) {
            0..=2 => self.create(&volume, &mut model, directory, &name),
            3 => self.remove(&volume, &mut model, directory, &name),
            4 => self.rename(&volume, &mut model, directory, &name),
            _ => self.store_data(&volume, &mut model),
        }
        self.changing = self.disk.is_dead();
        self.members.insert(VOLUME, model);
    }

    fn create(&mut self, volume: &Arc<Volume>, model: &mut Model, directory: Fid, name: &[u8]) {
        let kind = [FileKind::File, FileKind::Directory, FileKind::Symlink][self.rng.below(3) as usize];
        let (given, set) = (name.to_vec(), SetStatus::default());
        let made = update(volume, move |tx| {
            let created = match kind {
                FileKind::File => tx.create_file(directory, &given, &set, ALICE),
                FileKind::Directory => tx.make_dir(directory, &given, &set, ALICE),
                _ => tx.symlink(directory, &given, b"text", &set, ALICE),
            }?;
            Ok(created.object.fid(VOLUME))
        });
        if let Ok(fid) = made {
            let data: &[u8] = if kind == FileKind::Symlink { b"text" } else { b"" };
            model.create(directory, name, kind, fid, data);
        }
    }

    fn remove(&mut self, volume: &Arc<Volume>, model: &mut Model, directory: Fid, name: &[u8]) {
        let Some(fid) = model.nodes[&directory].names.get(name).copied() else { return };
        let (given, kind) = (name.to_vec(), model.nodes[&fid].kind);
        let removed = update(volume, move |tx| match kind {
            FileKind::Directory => tx.remove_dir(directory, &given, ALICE),
            _ => tx.remove_file(directory, &given, ALICE),
        });
        if let Ok(removed) = removed {
            assert!(matches!(removed.object, Object::Gone(_)));
            model.remove(directory, name, kind).unwrap();
        }
    }

    fn rename(&mut self, volume: &Arc<Volume>, model: &mut Model, to: Fid, name: &[u8]) {
        let directories = model.of_kind(FileKind::Directory);
        let from = directories[self.rng.below(directories.len() as u64) as usize];
        let Some(old) = model.nodes[&from].names.keys().next().cloned() else { return };
        let (old_name, new_name) = (old.clone(), name.to_vec());
        let renamed = update(volume, move |tx| {
            let (old_name, new_name) = (&old_name[..], &new_name[..]);
            let rename = Rename { old_directory: from, old_name, new_directory: to, new_name };
            tx.rename(rename, Replacing::Allowed, ALICE).map(drop)
        });
        if renamed.is_ok() {
            model.rename(from, &old, to, name).unwrap();
        }
    }

    fn store_data(&mut self, volume: &Arc<Volume>, model: &mut Model) {
        let files = model.of_kind(FileKind::File);
        if files.is_empty() {
            return;
        }
        let fid = files[self.rng.below(files.len() as u64) as usize];
        let had = model.nodes[&fid].data.len() as u64;
        let position = self.rng.below(had.min(100_000) + 1000);
        let len = [0, 10, 3000, 20_000, 90_000][self.rng.below(5) as usize];
        let file_length = if self.rng.chance(30) { position + len } else { u64::MAX };
        let bytes = vec![self.rng.next() as u8 | 1; len as usize];
        if store_bytes(volume, fid, position, &bytes, file_length).is_ok() {
            model.store(fid, position as usize, &bytes, file_length.min(1 << 40) as usize);
        }
    }

    fn clone_one(&mut self) {
        if self.members.len() > 6 {
            return;
        }
        let Some(source) = self.pick(|_| true) else { return };
        let id = self.new_id();
        let snapshot = self.rng.chance(40);
        let read_write = self.rng.chance(10) && self.volume(source).header().kind != VolumeKind::ReadWrite;
        let kind = match self.rng.below(2) {
            _ if read_write => VolumeKind::ReadWrite,
            0 if !snapshot => VolumeKind::ReadOnly,
            _ => VolumeKind::Backup,
        };
        let name = VolumeName::new(&format!("clone{id}")).unwrap();
        let made = now(self.store.clone_volume(source, CloneSpec { id, name, kind, snapshot }));
        let mut after = self.members.clone();
        after.insert(id, self.members[&source].clone());
        if let Ok(volume) = &made {
            let header = volume.header();
            assert!(header.destroy && !header.online && header.snapshot == (snapshot && !read_write));
        }
        self.outcome(after, made);
    }

    fn reclone(&mut self) {
        let Some(source) = self.pick(|_| true) else { return };
        let Some(clone) = self.pick(|id| *id != source) else { return };
        let (from, to) = (self.volume(source).header(), self.volume(clone).header());
        if to.kind == VolumeKind::ReadWrite || from.parent != to.parent {
            return;
        }
        let mut after = self.members.clone();
        after.insert(clone, self.members[&source].clone());
        let answer = now(self.store.reclone_volume(source, clone));
        self.outcome(after, answer);
    }

    fn delete(&mut self) {
        let Some(id) = self.pick(|_| true) else { return };
        if self.members.len() < 2 || id == VOLUME && self.rng.chance(60) {
            return;
        }
        let mut after = self.members.clone();
        after.remove(&id);
        let answer = now(self.store.delete_volume(id));
        self.outcome(after, answer);
    }

    /// Converts a clone to the lost read-write volume; if there is one, to another.
    fn convert(&mut self) {
        let has_writer = self.members.contains_key(&VOLUME);
        if has_writer && self.rng.chance(80) {
            return;
        }
        let Some(from) = self.pick(|id| *id != VOLUME) else { return };
        if self.volume(from).header().kind == VolumeKind::ReadWrite {
            return;
        }
        let id = if has_writer { self.new_id() } else { VOLUME };
        let mut after = self.members.clone();
        let model = after.remove(&from).unwrap();
        after.insert(id, model);
        let name = VolumeName::new(&format!("converted{}", self.next_id)).unwrap();
        let answer = now(self.store.convert_to_read_write(from, id, name));
        self.outcome(after, answer);
    }

    /// Gives a volume the state of another, or nearly so.
    fn restore(&mut self) {
        let (Some(to), Some(from)) = (self.pick(|_| true), self.pick(|_| true)) else { return };
        let (source, target) = (self.volume(from), self.volume(to));
        let full = self.rng.chance(40);
        let Ok(mut restore) = now(target.begin_restore(full)) else {
            assert!(self.disk.is_dead());
            return;
        };
        assert!(matches!(now(target.begin_restore(true)), Err(VolumeError::Busy)));
        let stop = if self.rng.chance(30) { self.rng.below(6) } else { u64::MAX };
        for (number, record) in records(&source).iter().enumerate() {
            if number as u64 == stop {
                break;
            }
            let fid = record.fid(VOLUME);
            let same = self.members[&to].nodes.get(&fid) == self.members[&from].nodes.get(&fid);
            let written = if same && !full && self.rng.chance(70) {
                now(restore.keep(record.vnode))
            } else {
                members::put(&mut restore, &source, record)
            };
            if let Err(error) = written {
                assert!(self.disk.is_dead(), "{error:?}");
                return;
            }
            if self.rng.chance(20) {
                drop(now(self.store.background_step()));
            }
            if self.rng.chance(20) {
                self.relocate();
            }
        }
        if !self.disk.is_dead() {
            self.check_one(to);
        }
        match self.rng.below(4) {
            _ if stop != u64::MAX => drop(restore),
            0 => drop(now(restore.abandon())),
            _ => {
                let mut after = self.members.clone();
                after.insert(to, self.members[&from].clone());
                let answer = now(restore.commit(RestoredHeader::default()));
                self.outcome(after, answer);
            }
        }
    }

    /// Moves some chunks to other places of the drive, which changes nothing that anybody sees.
    fn relocate(&mut self) {
        let mut relocation = Relocation::of_drive(DriveId::OWN, DriveId::OWN);
        for _ in 0..1 + self.rng.below(4) {
            let bytes = self.rng.below(200_000);
            match now(self.store.relocate_step(&mut relocation, bytes)) {
                _ if self.disk.is_dead() => return,
                Ok(done) => assert_eq!((done.changed, done.bad), (0, 0)),
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    /// Makes copies of some chunks on the other drive.
    fn copy(&mut self) {
        let mut position = Rebuild::default();
        for _ in 0..1 + self.rng.below(4) {
            let bytes = self.rng.below(200_000);
            match now(self.store.rebuild_step(&mut position, bytes)) {
                _ if self.disk.is_dead() => return,
                Ok(done) => assert_eq!(done.missing, 0),
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    fn check_one(&self, id: VolumeId) {
        assert!(read(&self.volume(id)) == self.members[&id], "volume {id} is not what it should be");
    }

    fn check(&self) {
        let there: Vec<_> = self.store.volumes().iter().map(|volume| volume.id()).collect();
        assert_eq!(there, self.members.keys().copied().collect::<Vec<_>>());
        for id in self.members.keys() {
            self.check_one(*id);
        }
        self.check_changes();
    }

    /// Every difference between two volumes of a group is listed as changed.
    fn check_changes(&self) {
        for (newer, model) in &self.members {
            for (older, before) in &self.members {
                let (newer, older) = (self.volume(*newer), self.volume(*older));
                let Ok(changed) = all_changed(&newer, &older) else { continue };
                for fid in model.nodes.keys().chain(before.nodes.keys()) {
                    let same = model.nodes.get(fid) == before.nodes.get(fid);
                    let there = model.nodes.keys().any(|other| other.vnode == fid.vnode);
                    let listed = changed.get(&fid.vnode);
                    assert!(
                        same || listed == Some(&there),
                        "{fid:?} changed between {} and {}",
                        older.id(),
                        newer.id()
                    );
                }
            }
        }
    }

    fn reopen(&mut self) {
        // One process at a time has the disk open.
        (self.store, self.kv) = open_both(&CrashDisk::new(), &CrashDisk::new()).unwrap();
        let (store, kv) = open_with_copies(&self.disk, self.far.as_ref());
        (self.store, self.kv) = (store, kv);
    }

    /// After a power failure there is what was acknowledged, or that and the operation in progress.
    fn recover(&mut self) {
        self.disk = self.disk.image(&mut self.rng);
        if let Some(far) = &mut self.far {
            far.crash(&mut self.rng);
        }
        self.reopen();
        for volume in self.store.volumes() {
            let header = volume.header();
            // A half-made copy for a read-write volume.
            if header.destroy && header.kind == VolumeKind::ReadWrite && header.restored_from.0 == 0 {
                now(self.store.delete_volume(volume.id())).unwrap();
            }
        }
        let found: Members = self.store.volumes().iter().map(|volume| (volume.id(), read(volume))).collect();
        if std::mem::take(&mut self.changing) {
            self.members.insert(VOLUME, found[&VOLUME].clone());
        }
        let after = self.after.take();
        let ids = |members: &Members| members.keys().map(|id| id.0).collect::<Vec<_>>();
        assert!(
            found == self.members || Some(&found) == after.as_ref(),
            "neither before nor after: {:?}, before {:?}, after {:?}",
            ids(&found),
            ids(&self.members),
            after.as_ref().map(ids)
        );
        self.members = found;
    }
}

const FAR: DriveId = DriveId(1);

/// A store with a second drive, which takes copies.
fn open_with_copies(disk: &CrashDisk, far: Option<&Drives>) -> (VolumeStore, Kv) {
    let (store, kv) = open_both(disk, disk).unwrap();
    match far {
        Some(drives) => drives.add_to(&store, disk),
        None => {
            let far = FileSegments::over(CrashFolder(disk.clone()));
            let far = SegmentDrive::open(far, Parts::inline(), 4 << 20).unwrap();
            store.add_drive(FAR, Arc::new(far)).unwrap();
        }
    }
    store.use_drives(&[DriveId::OWN, FAR]).unwrap();
    (store, kv)
}

fn all_changed(newer: &Arc<Volume>, older: &Arc<Volume>) -> Result<BTreeMap<VnodeId, bool>, VolumeError> {
    let (mut all, mut after) = (BTreeMap::new(), VnodeId(0));
    loop {
        let some = newer.changed_since(older, after, 3)?;
        let Some((last, _)) = some.last() else { return Ok(all) };
        after = *last;
        all.extend(some.into_iter().map(|(vnode, record)| (vnode, record.is_some())));
    }
}

/// A drive of another kind for every second seed.
fn far(seed: u64) -> Option<Drives> {
    (seed % 4 > 1).then(|| Drives::of_seed(seed / 4 + seed % 2, 1))
}

fn live(seed: u64, steps: u64, far: Option<Drives>) {
    let mut world = World::new(seed, far);
    for step in 0..steps {
        world.step();
        world.check();
        if step % 25 == 24 {
            world.reopen();
            world.check();
        }
    }
    run_background(&world.store);
    world.check();
    check_nothing_leaks(&world.store, &world.kv);
    assert_eq!(now(world.store.sweep_drive(FAR)).unwrap().live, 0);
}

fn live_through_crashes(seed: u64, far: Option<Drives>) {
    let mut world = World::new(seed, far);
    for _ in 0..6 {
        let fuse = 1 + world.rng.below(400);
        world.disk.crash_after(fuse);
        while !world.disk.is_dead() {
            world.step();
        }
        world.recover();
        world.check();
        assert_eq!(now(world.store.sweep()).unwrap().missing, []);
        if world.far.is_some() {
            // A chunk may have been discarded just before the power failed, and its row not.
            run_background(&world.store);
        }
        assert_eq!(now(world.store.sweep_drive(FAR)).unwrap().missing, []);
    }
    run_background(&world.store);
    world.check();
    check_nothing_leaks(&world.store, &world.kv);
    assert_eq!(now(world.store.sweep_drive(FAR)).unwrap().live, 0);
}

#[test]
fn volumes_of_a_group_hold_what_they_should_and_leave_nothing() {
    for seed in seeds(12) {
        let result = std::panic::catch_unwind(|| live(seed, 120, far(seed)));
        assert!(result.is_ok(), "seed {seed}");
    }
}

#[test]
fn power_cuts_leave_every_volume_as_acknowledged() {
    for seed in seeds(10) {
        let result = std::panic::catch_unwind(|| live_through_crashes(seed, far(seed)));
        assert!(result.is_ok(), "seed {seed}");
    }
}

/// The read-write volume was deleted while the rows of an older clone were deleted, and its chunks were not.
#[test]
fn a_group_that_loses_two_states_at_a_time_leaves_no_chunk() {
    live(155, 120, None);
    live_through_crashes(117, None);
}

/// A chunk in a bucket had been discarded when the power failed, and its row was still there: nothing is missing.
#[test]
fn a_chunk_that_was_discarded_before_a_power_cut_is_not_missing() {
    live_through_crashes(123, far(123));
}
