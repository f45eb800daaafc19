//! Times of files under a real kernel, to the nanosecond, on the machine and on another one.
//!
//! They need root and `/dev/fuse`; without these they say so and pass, but fail if `CI=true`.
#![allow(clippy::unwrap_used)] // A cell that cannot be made is a failed test.

#[allow(dead_code)] // Each test uses a part of it.
use crate::kit;

use std::fs::{self, File, FileTimes};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kit::{MountedCell, can_mount};

const BUILDS: usize = 20;
/// So soon after a build comes a change.
const AFTER: Duration = Duration::from_millis(30);

fn time(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

/// Runs make in a folder. Returns true if it has built something.
fn make(folder: &Path) -> bool {
    let output = Command::new("make").arg("-C").arg(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said.contains("cp source product")
}

#[test]
fn a_change_thirty_milliseconds_after_the_build_is_seen() {
    if !can_mount() {
        return;
    }
    for passthrough in [true, false] {
        let cell = MountedCell::new();
        let (here, there) = (cell.machine("here", passthrough), cell.machine("there", passthrough));
        fs::write(here.mount.join("Makefile"), "product: source\n\tcp source product\n").unwrap();
        fs::write(here.mount.join("source"), "0").unwrap();
        assert!(make(&here.mount));
        for build in 1..=BUILDS {
            std::thread::sleep(AFTER);
            fs::write(here.mount.join("source"), build.to_string()).unwrap();
            assert!(make(&here.mount), "change {build}, passthrough {passthrough}");
            assert_eq!(fs::read_to_string(here.mount.join("product")).unwrap(), build.to_string());
            assert!(!make(&here.mount), "change {build}, passthrough {passthrough}: nothing has changed");
            for name in ["source", "product"] {
                assert_eq!(time(&here.mount.join(name)), time(&there.mount.join(name)), "{name}");
            }
        }
    }
}

#[test]
fn a_time_that_a_program_sets_is_kept_to_the_nanosecond() {
    if !can_mount() {
        return;
    }
    let cell = MountedCell::new();
    let (here, there) = (cell.machine("here", true), cell.machine("there", false));
    let at = UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789);
    let file = File::create(here.mount.join("set")).unwrap();
    file.set_times(FileTimes::new().set_modified(at)).unwrap();
    assert_eq!(time(&here.mount.join("set")), at);
    drop(file);
    let later = at + Duration::from_nanos(1);
    for (name, time_set) in [("set", at), ("later", later)] {
        let file = File::options().create(true).append(true).open(here.mount.join(name)).unwrap();
        file.set_times(FileTimes::new().set_modified(time_set)).unwrap();
        drop(file);
        assert_eq!([&here, &there].map(|machine| time(&machine.mount.join(name))), [time_set; 2], "{name}");
    }
}
