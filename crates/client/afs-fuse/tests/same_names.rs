//! Test of two machines that create, rename, link and remove the same names at the same time, under a real kernel: when
//! both are done, both show the same names.
//!
//! It needs root and `/dev/fuse`; without these it says so and passes, but fails if `CI=true`.
#![allow(clippy::unwrap_used)] // A cell that cannot be made is a failed test.

#[allow(dead_code)] // Each test uses a part of it.
use crate::kit;

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::thread;

use kit::{MountedCell, can_mount};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const ROUNDS: usize = 12;
const STEPS: usize = 150;

/// Generator of choices from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.below(NAMES.len())]
    }
}

/// One change. If it fails, the other machine was first.
fn step(chance: &mut Chance, dir: &Path) {
    let (one, other) = (dir.join(chance.name()), dir.join(chance.name()));
    match chance.below(8) {
        0 | 1 => drop(fs::write(&one, [b'x'; 10])),
        2 | 3 => drop(fs::rename(&one, &other)),
        4 => drop(fs::hard_link(&one, &other)),
        5 => drop(symlink("nowhere", &one)),
        6 => drop(fs::remove_file(&one)),
        _ => drop(fs::create_dir(&one).and_then(|()| fs::remove_dir(&one))),
    }
}

/// Type and contents of each name, as far as all machines must agree.
fn seen(dir: &Path) -> Vec<String> {
    let shown = |name: &&str| match fs::symlink_metadata(dir.join(name)) {
        Ok(of) => format!("{name}: {} {:o} {} {} {}", of.ino(), of.mode(), of.nlink(), of.len(), of.mtime()),
        Err(error) => format!("{name}: {:?}", error.kind()),
    };
    NAMES.iter().map(shown).collect()
}

#[test]
fn changes_of_two_machines_to_the_same_names_are_seen_by_both() {
    if !can_mount() {
        return;
    }
    let cell = MountedCell::new();
    let machines = [cell.machine("one", true), cell.machine("two", false), cell.machine("looker", true)];
    for round in 0..ROUNDS {
        let dirs: Vec<_> = machines.iter().map(|machine| machine.mount.join(format!("d{round}"))).collect();
        fs::create_dir(&dirs[0]).unwrap();
        thread::scope(|scope| {
            for (number, dir) in dirs.iter().enumerate().take(2) {
                scope.spawn(move || {
                    let mut chance = Chance((round * 2 + number) as u64 + 1);
                    (0..STEPS).for_each(|_| step(&mut chance, dir));
                });
            }
        });
        let views: Vec<_> = dirs.iter().map(|dir| seen(dir)).collect();
        assert_eq!(views[0], views[2], "round {round}, the first machine and one that only looks");
        assert_eq!(views[1], views[2], "round {round}, the second machine and one that only looks");
    }
}
