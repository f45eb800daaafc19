//! Tests of files that are open on one machine while another changes them, under a real kernel, with passthrough (as
//! root mounts) and without (as a user mounts).
//!
//! They need root and `/dev/fuse`; without these they say so and pass, but fail if `CI=true`.
#![allow(clippy::unwrap_used)] // A cell that cannot be made is a failed test.

#[allow(dead_code)] // Each test uses a part of it.
use crate::kit;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::process::Command;

use kit::{Machine, MountedCell, can_mount};

const ROUNDS: usize = 60;

/// A cell with two machines: one writes what the other has open.
fn two_machines(passthrough: bool) -> (MountedCell, Machine, Machine) {
    let cell = MountedCell::new();
    let (writer, reader) = (cell.machine("writer", true), cell.machine("reader", passthrough));
    (cell, writer, reader)
}

#[test]
fn a_file_of_which_an_older_version_is_open_can_always_be_opened() {
    if !can_mount() {
        return;
    }
    for passthrough in [true, false] {
        let (_cell, writer, reader) = two_machines(passthrough);
        let (theirs, ours) = (writer.mount.join("log"), reader.mount.join("log"));
        let text = |round: usize| format!("line {round}\n").repeat(round + 1);
        fs::write(&theirs, text(0)).unwrap();
        let mut held = Vec::new();
        for round in 0..ROUNDS {
            fs::write(&theirs, text(round)).unwrap();
            let file = File::open(&ours).unwrap_or_else(|e| panic!("round {round} of {passthrough}: {e}"));
            assert_eq!(fs::read_to_string(&ours).unwrap(), text(round), "round {round} of {passthrough}");
            assert_eq!(Command::new("cat").arg(&ours).output().unwrap().stdout, text(round).into_bytes());
            // The first version stays open to the end, the others for some rounds.
            held.push((round, file));
            if held.len() > 4 {
                held.remove(1);
            }
            for (then, file) in &mut held {
                let mut bytes = vec![0; text(*then).len()];
                if passthrough {
                    file.read_exact_at(&mut bytes, 0).unwrap();
                    assert_eq!(bytes, text(*then).into_bytes(), "{then} in round {round}");
                }
            }
            // Opening for writing must succeed, too.
            File::options().append(true).open(&ours).unwrap();
        }
    }
}

#[test]
fn every_version_of_a_file_has_the_same_inode_number() {
    if !can_mount() {
        return;
    }
    let (_cell, writer, reader) = two_machines(true);
    let (theirs, ours) = (writer.mount.join("f"), reader.mount.join("f"));
    fs::write(&theirs, "one").unwrap();
    let held = File::open(&ours).unwrap();
    let number = held.metadata().unwrap().ino();
    fs::write(&theirs, "two, longer").unwrap();
    let newer = File::open(&ours).unwrap();
    for _ in 0..3 {
        let seen = (fs::metadata(&ours).unwrap().ino(), newer.metadata().unwrap().ino());
        assert_eq!((seen, held.metadata().unwrap().ino()), ((number, number), number));
    }
    assert_eq!(
        fs::read_dir(&reader.mount).unwrap().next().unwrap().unwrap().metadata().unwrap().ino(),
        number
    );
}

#[test]
fn a_program_that_runs_here_can_be_replaced_there_and_started_again() {
    if !can_mount() {
        return;
    }
    for passthrough in [true, false] {
        let (_cell, writer, reader) = two_machines(passthrough);
        let (theirs, ours) = (writer.mount.join("prog"), reader.mount.join("prog"));
        let mut running = Vec::new();
        for round in 0..10 {
            let mut program = fs::read("/bin/sleep").unwrap();
            program.extend(vec![0; round]);
            fs::write(&theirs, &program).unwrap();
            fs::set_permissions(&theirs, fs::Permissions::from_mode(0o755)).unwrap();
            running
                .push(Command::new(&ours).arg("30").spawn().unwrap_or_else(|e| panic!("round {round}: {e}")));
            assert!(Command::new(&ours).arg("0").status().unwrap().success(), "round {round}");
        }
        for mut child in running {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

#[test]
fn data_of_an_older_version_is_not_read_again_after_its_close() {
    if !can_mount() {
        return;
    }
    let (_cell, writer, reader) = two_machines(false);
    let (theirs, ours) = (writer.mount.join("f"), reader.mount.join("f"));
    let link = reader.mount.join("link");
    for round in 0..5 {
        let text = |version: usize| format!("{round:04} {version:04}\n").repeat(2000);
        fs::write(&theirs, text(1)).unwrap();
        let mut held = File::open(&ours).unwrap();
        let mut first = String::new();
        held.read_to_string(&mut first).unwrap();
        assert_eq!(first, text(1));
        fs::write(&theirs, text(2)).unwrap();
        assert_eq!(fs::read_to_string(&ours).unwrap(), text(2));
        drop(held);
        // Through another name, and with the names invalidated, the kernel finds the first inode again.
        fs::hard_link(&ours, &link).unwrap();
        assert_eq!(fs::read_to_string(&link).unwrap(), text(2));
        fs::remove_file(&link).unwrap();
        for _ in 0..3 {
            fs::write("/proc/sys/vm/drop_caches", "2").unwrap();
            assert_eq!(fs::read_to_string(&ours).unwrap(), text(2));
        }
    }
}

#[test]
fn a_file_of_which_an_older_version_is_open_can_be_mapped_and_shared() {
    if !can_mount() {
        return;
    }
    for passthrough in [true, false] {
        let (_cell, writer, reader) = two_machines(passthrough);
        let (theirs, ours) = (writer.mount.join("f"), reader.mount.join("f"));
        let map = "import mmap, os, sys\nf = os.open(sys.argv[1], os.O_RDWR)\nm = mmap.mmap(f, 0)\n\
                   print(m[:].decode(), end='')\nm[:4] = b'MAP '\nm.flush()\nm.close()\nos.close(f)";
        for round in 0..10 {
            fs::write(&theirs, format!("one  of {round}")).unwrap();
            let held = File::open(&ours).unwrap();
            fs::write(&theirs, format!("two  of {round}")).unwrap();
            let output = Command::new("python3").args(["-c", map]).arg(&ours).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(output.stdout, format!("two  of {round}").into_bytes());
            assert_eq!(fs::read_to_string(&theirs).unwrap(), format!("MAP  of {round}"));
            drop(held);
        }
    }
}

#[test]
fn a_program_that_runs_is_not_truncated() {
    if !can_mount() {
        return;
    }
    for passthrough in [true, false] {
        let (_cell, _writer, machine) = two_machines(passthrough);
        let program = machine.mount.join("sleep");
        fs::copy("/bin/sleep", &program).unwrap();
        let length = fs::metadata(&program).unwrap().len();
        let mut running = Command::new(&program).arg("100").spawn().unwrap();
        for (writes, flags) in [(true, 0), (true, libc::O_TRUNC), (false, libc::O_TRUNC)] {
            let opened = File::options().read(true).write(writes).custom_flags(flags).open(&program);
            let errno = opened.map_err(|error| error.raw_os_error());
            assert_eq!(errno.err(), Some(Some(libc::ETXTBSY)), "{writes} {flags:o}, {passthrough}");
        }
        assert_eq!(fs::metadata(&program).unwrap().len(), length, "{passthrough}");
        assert!(running.try_wait().unwrap().is_none(), "{passthrough}: it runs");
        running.kill().unwrap();
        running.wait().unwrap();
        File::options().write(true).truncate(true).open(&program).unwrap();
    }
}
