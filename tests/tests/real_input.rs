//! A real program in a real mount: built there, tested there, and the same in every mount.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use andrew_tests::live::closing::{close, write_and_close};
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::{run, seconds};
use andrew_tests::live::setup::Setup;
use andrew_tests::live::wait::until;
use andrew_tests::real_input::tree::{self, Tree, comparable, differences};
use andrew_tests::real_input::{build, source};

/// Files that contain their own date.
const DATED: &[&str] = &["configure.log"];

#[test]
fn a_program_built_in_a_mount_is_the_one_built_on_local_disk() {
    if !all_there(&[Need::Fuse, Need::Compiler, Need::Sources]) {
        return;
    }
    let tarball = source::tarball("zlib");
    let setup = Setup::new("real_input", 1, seconds(400));
    let local = setup.scratch().folder("local");
    source::unpack(&tarball, &local);

    let cell = setup.up("rl", &[]);
    let other = setup.mount("other", &[]);
    let (here, there) = (cell.mount().join("zlib"), other.path().join("zlib"));
    copy(&local, &here);
    assert_same(&here, &tree::read(&here).unwrap(), &local, &tree::read(&local).unwrap());

    let reader = Reader::start(&there);
    build::build(&here);
    let said = build::test(&here);
    assert!(said.contains("zlib test OK"), "{said}");
    // As soon as every file is closed in one mount it is visible in the other.
    let seen_here = tree::read(&here).unwrap();
    let seen_there = tree::read(&there).unwrap();
    assert_eq!(differences(&seen_here, &seen_there), Vec::<String>::new());
    reader.finish();

    build::build(&local);
    let _ = build::test(&local);
    assert_same(&here, &seen_here, &local, &tree::read(&local).unwrap());
    // The built program runs from the other machine's mount.
    let mut example = Command::new(there.join("example"));
    example.current_dir(setup.scratch().path());
    let version = run(example, seconds(30));
    assert!(version.contains("zlib version"), "{version}");
    drop(other);
    cell.stop();
}

fn copy(from: &Path, to: &Path) {
    let mut cp = Command::new("cp");
    cp.args(["-r", "--preserve=mode,timestamps"]).arg(from).arg(to);
    run(cp, seconds(60));
}

fn assert_same(here: &Path, seen: &Tree, local: &Path, expected: &Tree) {
    let seen = comparable(seen.clone(), here, DATED);
    let expected = comparable(expected.clone(), local, DATED);
    assert_eq!(differences(&seen, &expected), Vec::<String>::new());
}

/// A thread that reads every file, over and over, while they change.
struct Reader {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Reader {
    fn start(folder: &Path) -> Self {
        let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counted, folder) = (stop.clone(), rounds.clone(), folder.to_owned());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                match tree::read(&folder) {
                    Ok(_) => counted.fetch_add(1, Ordering::SeqCst),
                    // Removed between the listing and the read.
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        counted.fetch_add(1, Ordering::SeqCst)
                    }
                    Err(error) => panic!("a reader of what is being built: {error}"),
                };
            }
        });
        Self { stop, rounds, thread }
    }

    fn finish(self) {
        until("a whole round of reading", seconds(60), || {
            (self.rounds.load(Ordering::SeqCst) > 0 || self.thread.is_finished()).then_some(())
        });
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
    }
}

#[test]
fn a_file_closed_in_one_mount_is_seen_in_the_other() {
    if !all_there(&[Need::Fuse]) {
        return;
    }
    let setup = Setup::new("two_mounts", 2, seconds(180));
    let cell = setup.up("rlidwk", &[]);
    let other = setup.mount("other", &[]);
    let sides = [cell.mount().to_owned(), other.path().to_owned()];
    for round in 0..40_usize {
        let (writer, reader) = (&sides[round % 2], &sides[(round + 1) % 2]);
        contents_follow(writer, reader, round);
        names_follow(writer, reader, round);
    }
    drop(other);
    cell.stop();
}

/// The same file again and again, longer and shorter, replaced, appended to and truncated.
fn contents_follow(writer: &Path, reader: &Path, round: usize) {
    let (written, read) = (writer.join("file"), reader.join("file"));
    let mut expected: Vec<u8> = (0..round * 7919 % 50_000).map(|at| (at * (round + 3)) as u8).collect();
    write_and_close(&written, &expected).unwrap();
    assert!(fs::read(&read).unwrap() == expected, "round {round}: replaced");
    assert_eq!(fs::metadata(&read).unwrap().len(), expected.len() as u64);

    let mut file = fs::OpenOptions::new().append(true).open(&written).unwrap();
    file.write_all(b"and more").unwrap();
    close(file).unwrap();
    expected.extend_from_slice(b"and more");
    assert!(fs::read(&read).unwrap() == expected, "round {round}: appended to");

    let file = fs::OpenOptions::new().write(true).open(&written).unwrap();
    file.set_len(5).unwrap();
    close(file).unwrap();
    expected.truncate(5);
    assert_eq!(fs::read(&read).unwrap(), expected, "round {round}: cut");
}

/// Names exist, are renamed, and are removed when the call that did it returns.
fn names_follow(writer: &Path, reader: &Path, round: usize) {
    let at = |top: &Path, name: &str| -> PathBuf { top.join(format!("folder{round}")).join(name) };
    fs::create_dir(writer.join(format!("folder{round}"))).unwrap();
    assert!(!at(reader, "one").exists());
    write_and_close(&at(writer, "one"), b"1").unwrap();
    assert_eq!(fs::read(at(reader, "one")).unwrap(), b"1");
    fs::rename(at(writer, "one"), at(writer, "two")).unwrap();
    assert!(!at(reader, "one").exists());
    assert_eq!(fs::read(at(reader, "two")).unwrap(), b"1");
    fs::hard_link(at(writer, "two"), at(writer, "three")).unwrap();
    std::os::unix::fs::symlink("three", at(writer, "link")).unwrap();
    assert_eq!(fs::read(at(reader, "link")).unwrap(), b"1");
    assert_eq!(
        andrew_tests::live::files::names(&reader.join(format!("folder{round}"))),
        ["link", "three", "two"]
    );
    fs::remove_dir_all(writer.join(format!("folder{round}"))).unwrap();
    assert!(!reader.join(format!("folder{round}")).exists());
}
