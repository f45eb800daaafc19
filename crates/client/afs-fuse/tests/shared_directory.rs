//! Test of machines that work in one directory at the same time, under real kernels: none waits for a lock of its own
//! kernel, and a name that is replaced is there at every moment.
//!
//! Each scene is made in a directory where Alice alone has rights, whose token root has on each machine, and in one where
//! everybody has.
//!
//! It needs root and `/dev/fuse`; without these it says so and passes, but fails if `CI=true`.
#![allow(clippy::unwrap_used)] // A cell that cannot be made is a failed test.

#[allow(dead_code)] // Each test uses a part of it.
use crate::kit;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use afs_venus::TokenOwner;
use kit::{ALICE, Machine, MountedCell, can_mount};

/// What readers see is this long; a part of it would be told from the whole.
const LENGTH: usize = 3000;

/// Two machines, and one that only looks. The last one is like a user's own mount.
struct Scene {
    machines: Vec<Machine>,
    cell: MountedCell,
}

impl Scene {
    fn new() -> Scene {
        let cell = MountedCell::new();
        let machines =
            vec![cell.machine("one", true), cell.machine("two", true), cell.machine("looker", false)];
        cell.log_in(TokenOwner::Uid(ALICE), "alice");
        machines.iter().for_each(|machine| machine.log_in(TokenOwner::Uid(0), "alice"));
        Scene { machines, cell }
    }

    /// A directory as each machine sees it: Alice's alone, or everybody's.
    fn directory(&self, is_private: bool) -> Vec<PathBuf> {
        let name = if is_private { "private" } else { "public" };
        self.cell.sh(ALICE, &format!("mkdir $M/{name}")).unwrap();
        if is_private {
            self.cell.set_acl(name, &[("alice", "rlidwka")]);
        }
        self.machines.iter().map(|machine| machine.mount.join(name)).collect()
    }

    /// Waits for the kernels that the time limit has ended.
    fn cut_waits(&self) -> Vec<u64> {
        self.machines.iter().map(|machine| machine.venus.counters().kernel_waits_cut).collect()
    }
}

fn for_both(work: impl Fn(&Scene, &[PathBuf])) {
    if !can_mount() {
        return;
    }
    let scene = Scene::new();
    for is_private in [true, false] {
        work(&scene, &scene.directory(is_private));
    }
    assert_eq!(scene.cut_waits(), [0; 3], "a request of a kernel has waited for itself");
}

/// Writes a file under another name and renames it over `to`.
fn replace(dir: &Path, to: &str, by: usize, round: usize) -> io::Result<()> {
    let new = dir.join(format!("new{by}"));
    fs::write(&new, format!("{round:06}").repeat(LENGTH / 6))?;
    fs::rename(&new, dir.join(to))
}

/// Reads the whole file; an error, or what is wrong.
fn read(path: &Path) -> Result<(), String> {
    let told = |error: io::Error| format!("{:?}", error.raw_os_error());
    let file = fs::File::open(path).map_err(|error| format!("open {}", told(error)))?;
    let mut bytes = vec![0; 2 * LENGTH];
    let length = file.read_at(&mut bytes, 0).map_err(|error| format!("read {}", told(error)))?;
    if length == LENGTH { Ok(()) } else { Err(format!("{length} bytes")) }
}

/// Reads on each machine, with so many threads, while `work` is done. Returns what went wrong, and how often.
fn while_read(
    dirs: &[PathBuf],
    name: &str,
    readers: usize,
    work: impl Fn(&[PathBuf]) + Sync,
) -> BTreeMap<String, usize> {
    let (wrong, working) = (Mutex::new(BTreeMap::new()), AtomicUsize::new(1));
    thread::scope(|scope| {
        for dir in dirs.iter().flat_map(|dir| vec![dir; readers]) {
            let (wrong, working) = (&wrong, &working);
            scope.spawn(move || {
                while working.load(Ordering::SeqCst) > 0 {
                    if let Err(error) = read(&dir.join(name)) {
                        *wrong.lock().unwrap().entry(error).or_default() += 1;
                    }
                }
            });
        }
        work(dirs);
        working.store(0, Ordering::SeqCst);
    });
    wrong.into_inner().unwrap()
}

#[test]
fn programs_of_two_machines_that_rename_in_one_directory_never_wait_for_their_own_kernel() {
    for_both(|_, dirs| {
        thread::scope(|scope| {
            for (by, dir) in [&dirs[0], &dirs[0], &dirs[1], &dirs[1]].into_iter().enumerate() {
                scope.spawn(move || {
                    for round in 0..40 {
                        replace(dir, &format!("name{by}.{round}"), by, round).unwrap();
                        fs::metadata(dir.join(format!("name{by}.{round}"))).unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(&dirs[2]).unwrap().count(), 4 * 40);
    });
}

#[test]
fn changes_of_directories_themselves_never_wait_for_their_own_kernel() {
    use std::os::unix::fs::PermissionsExt;
    for_both(|_, dirs| {
        thread::scope(|scope| {
            for (by, dir) in dirs.iter().take(2).enumerate() {
                scope.spawn(move || {
                    for round in 0..60 {
                        replace(dir, &format!("name{by}"), by, round).unwrap();
                        let _ = fs::create_dir(dir.join("sub"));
                        let _ = fs::write(dir.join("sub/file"), "x");
                        let _ = fs::remove_file(dir.join("sub/file"));
                        let _ = fs::rename(dir.join("sub"), dir.join("other"));
                        let _ = fs::remove_dir(dir.join("other"));
                    }
                });
                scope.spawn(move || {
                    let opened = fs::File::open(dir).unwrap();
                    for round in 0..60 {
                        fs::set_permissions(dir, fs::Permissions::from_mode(0o755 - round % 2)).unwrap();
                        opened.sync_all().unwrap();
                    }
                });
            }
        });
    });
}

#[test]
fn a_name_that_machines_replace_by_rename_can_always_be_opened_and_read() {
    for_both(|_, dirs| {
        replace(&dirs[0], "name", 9, 0).unwrap();
        let wrong = while_read(dirs, "name", 2, |dirs| {
            thread::scope(|scope| {
                for (by, dir) in [&dirs[0], &dirs[0], &dirs[1]].into_iter().enumerate() {
                    scope.spawn(move || (0..150).for_each(|round| replace(dir, "name", by, round).unwrap()));
                }
            });
        });
        assert_eq!(wrong, BTreeMap::new());
    });
}

#[test]
fn a_file_that_another_machine_rewrites_can_always_be_opened() {
    for_both(|_, dirs| {
        replace(&dirs[0], "name", 9, 0).unwrap();
        let wrong = while_read(&dirs[1..], "name", 4, |_| {
            (0..400).for_each(|round| {
                fs::write(dirs[0].join("name"), format!("{round:06}").repeat(LENGTH / 6)).unwrap()
            });
        });
        assert_eq!(wrong, BTreeMap::new());
    });
}

/// A file and a directory are replaced, and `work` is done after each round with their new contents.
fn replace_both(dir: &Path, rounds: usize, work: impl Fn(usize)) {
    for round in 0..rounds {
        let [new, old] = ["new", "old"].map(|name| dir.join(name));
        fs::create_dir(&new).unwrap();
        fs::write(new.join(round.to_string()), "").unwrap();
        fs::rename(dir.join("dir"), &old).ok();
        fs::rename(&new, dir.join("dir")).unwrap();
        replace(dir, "file", 0, round).unwrap();
        work(round);
        fs::remove_dir_all(&old).ok();
    }
}

/// The kernel installs the answer to a look-up of a name that it holds when the program runs again, without a lock: a
/// break between these must not be lost.
#[test]
fn names_that_are_looked_up_while_they_change_are_the_new_ones_after_the_change() {
    for_both(|_, dirs| {
        let (here, there) = (&dirs[0], &dirs[1]);
        let changing = AtomicUsize::new(1);
        thread::scope(|scope| {
            for name in ["file", "dir"].repeat(4) {
                let changing = &changing;
                scope.spawn(move || {
                    while changing.load(Ordering::SeqCst) > 0 {
                        let _ = fs::symlink_metadata(there.join(name));
                    }
                });
            }
            replace_both(here, 40, |round| {
                let file = fs::read_to_string(there.join("file")).unwrap();
                assert!(file.starts_with(&format!("{round:06}")), "{} in round {round}", &file[..6]);
                let inside = there.join("dir").join(round.to_string());
                if !inside.exists() {
                    // The term of a repeated look-up of a directory, and as long again for a busy machine.
                    thread::sleep(Duration::from_millis(50));
                    assert!(inside.exists(), "the directory before in round {round}");
                }
            });
            changing.store(0, Ordering::SeqCst);
        });
    });
}
