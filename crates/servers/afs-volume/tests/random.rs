//! Random operations compared with the model, with restarts in between.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::sync::Arc;

use afs_sim::crash::{CrashDisk, Rng, seeds};
use afs_volume::{LITERAL_MAX, Object, Rename, Replacing, SLOT_LEN, Volume, VolumeError, VolumeStore};
use afs_wire::fs::{FileKind, SetStatus};
use afs_wire::ids::{Fid, Uniquifier};
use support::kinds::Drives;
use support::model::{Model, kind_of};
use support::*;

struct World {
    rng: Rng,
    model: Model,
    volume: Arc<Volume>,
}

impl World {
    fn name(&mut self) -> Vec<u8> {
        match self.rng.below(40) {
            0 => vec![],
            1 => b".".to_vec(),
            2 => b"..".to_vec(),
            3 => b"x@sys".to_vec(),
            4 => vec![0xff; 1 + self.rng.below(257) as usize],
            _ => format!("name{}", self.rng.below(12)).into_bytes(),
        }
    }

    fn pick(&mut self, kind: FileKind) -> Fid {
        let known = self.model.of_kind(kind);
        match self.rng.below(50) {
            0 => Fid { unique: Uniquifier(77_777), ..ROOT },
            1 if kind == FileKind::Directory => self.pick(FileKind::File),
            _ if known.is_empty() => ROOT,
            _ => known[self.rng.below(known.len() as u64) as usize],
        }
    }

    fn step(&mut self) {
        match self.rng.below(12) {
            0..=2 => self.create(FileKind::File),
            3 => self.create(FileKind::Directory),
            4 => self.create(FileKind::Symlink),
            5 => self.link(),
            6 => self.remove(FileKind::File),
            7 => self.remove(FileKind::Directory),
            8 | 9 => self.rename(),
            _ => self.store(),
        }
    }

    fn create(&mut self, kind: FileKind) {
        let (directory, name) = (self.pick(FileKind::Directory), self.name());
        let text = vec![b't'; self.rng.below(1100) as usize];
        let expected = self.model.may_create(directory, &name);
        let (given, contents) = (name.clone(), text.clone());
        let set = SetStatus::default();
        let answer = update(&self.volume, move |tx| {
            let created = match kind {
                FileKind::File => tx.create_file(directory, &given, &set, ALICE),
                FileKind::Directory => tx.make_dir(directory, &given, &set, ALICE),
                _ => tx.symlink(directory, &given, &contents, &set, ALICE),
            }?;
            Ok(created.object.fid(VOLUME))
        });
        let fid = compare(expected, answer);
        if let Some(fid) = fid {
            let data = if kind == FileKind::Symlink { text } else { vec![] };
            self.model.create(directory, &name, kind, fid, &data);
        }
    }

    fn link(&mut self) {
        let (directory, name, existing) =
            (self.pick(FileKind::Directory), self.name(), self.pick(FileKind::File));
        // Mostly where it can work.
        let directory = match self.model.nodes.get(&existing) {
            Some(node) if self.rng.chance(80) => node.parent,
            _ => directory,
        };
        let expected = self.model.link(directory, &name, existing);
        compare(expected, update(&self.volume, move |tx| tx.link(directory, &name, existing, ALICE)));
    }

    fn remove(&mut self, kind: FileKind) {
        let (directory, name) = (self.pick(FileKind::Directory), self.name());
        let before = self.model.nodes.len();
        let expected = self.model.remove(directory, &name, kind);
        let removed = compare(
            expected,
            update(&self.volume, move |tx| match kind {
                FileKind::Directory => tx.remove_dir(directory, &name, ALICE),
                _ => tx.remove_file(directory, &name, ALICE),
            }),
        );
        if let Some(removed) = removed {
            assert_eq!(matches!(removed.object, Object::Gone(_)), self.model.nodes.len() < before);
        }
    }

    fn rename(&mut self) {
        let (from, to) = (self.pick(FileKind::Directory), self.pick(FileKind::Directory));
        let to = if self.rng.chance(40) { from } else { to };
        let (old, new) = (self.name(), self.name());
        let expected = self.model.rename(from, &old, to, &new);
        compare(
            expected,
            update(&self.volume, move |tx| {
                let rename =
                    Rename { old_directory: from, old_name: &old, new_directory: to, new_name: &new };
                tx.rename(rename, Replacing::Allowed, ALICE)
            }),
        );
    }

    fn store(&mut self) {
        let fid = self.pick(FileKind::File);
        let Some(node) = self.model.nodes.get(&fid).filter(|node| node.kind == FileKind::File) else {
            return;
        };
        let had = node.data.len() as u64;
        let len = match self.rng.below(8) {
            0 => 0,
            1 => self.rng.below(100),
            2 => LITERAL_MAX as u64 + self.rng.below(3) - 1,
            3 => SLOT_LEN + self.rng.below(3) - 1,
            4 => self.rng.below(2 * SLOT_LEN),
            _ => self.rng.below(40_000),
        };
        let position = match self.rng.below(4) {
            0 => 0,
            1 => had,
            _ => self.rng.below(had + 20_000),
        };
        let file_length = match self.rng.below(3) {
            0 => position + len,
            1 => self.rng.below(had + 1),
            _ => u64::MAX,
        };
        let mut bytes = vec![0; len as usize];
        let mark = self.rng.next();
        bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at as u64 ^ mark) as u8 | 1);
        store_bytes(&self.volume, fid, position, &bytes, file_length).unwrap();
        self.model.store(fid, position as usize, &bytes, file_length.min(1 << 40) as usize);
        let from = self.rng.below(position + len + 1);
        let part = read_bytes(&self.volume, fid, from, self.rng.below(70_000)).unwrap();
        let data = &self.model.nodes[&fid].data;
        let from = (from as usize).min(data.len());
        assert!(part == data[from..from + part.len()]);
    }
}

fn compare<T>(expected: Result<(), &str>, answer: Result<T, VolumeError>) -> Option<T> {
    match (expected, answer) {
        (Ok(()), Ok(answer)) => Some(answer),
        (Err(expected), Err(error)) if expected == kind_of(&error) => None,
        (expected, answer) => panic!("expected {expected:?}, got {:?}", answer.map(drop)),
    }
}

fn open_with(index: &CrashDisk, data: &CrashDisk, drives: &Drives) -> VolumeStore {
    let store = open(index, data).unwrap();
    drives.add_to(&store, index);
    store
}

/// With these drives for the data, over two of which the mebibytes of a file go round.
fn run(seed: u64, steps: u64, drives: &Drives, count: usize) {
    let (index, data) = (CrashDisk::new(), CrashDisk::new());
    let store = open_with(&index, &data, drives);
    let volume = now(store.create_volume(spec(0))).unwrap();
    if count > 0 {
        place(&volume, seed as u32 % (count as u32 + 1), count.min(2) as u32);
    }
    let mut world = World { rng: Rng(seed), model: Model::new(), volume };
    let mut store = store;
    for step in 0..steps {
        world.step();
        if world.rng.chance(3) {
            run_background(&store);
        }
        if step % 60 == 59 {
            world.model.check(&world.volume);
            drop((store, world.volume));
            store = open_with(&index, &data, drives);
            world.volume = store.volume(VOLUME).unwrap();
            world.model.check(&world.volume);
            if world.rng.chance(50) {
                assert_eq!(now(store.sweep()).unwrap().missing, []);
                drives.sweep(&store);
            }
        }
    }
    run_background(&store);
    world.model.check(&world.volume);
    drop((store, world.volume));
    let store = open_with(&index, &data, drives);
    now(store.delete_volume(VOLUME)).unwrap();
    run_background(&store);
    assert_eq!(drives.sweep(&store), 0);
    assert!(drives.are_empty(), "chunks are left on a drive");
}

#[test]
fn random_operations_leave_the_state_of_the_model() {
    for seed in seeds(12) {
        let result = std::panic::catch_unwind(|| run(seed, 240, &Drives::none(), 0));
        assert!(result.is_ok(), "seed {seed}");
    }
}

/// One to three of them.
#[test]
fn random_operations_over_drives_of_every_kind_leave_the_state_of_the_model() {
    for seed in seeds(12) {
        let count = 1 + (seed / 2) as usize % 3;
        let result = std::panic::catch_unwind(|| run(seed, 120, &Drives::of_seed(seed, count), count));
        assert!(result.is_ok(), "seed {seed}, {count} drives");
    }
}
