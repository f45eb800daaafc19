//! Mounts at their ends: a process that is killed or stopped, a mount that another namespace holds, `umount` of each.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::fd::OwnedFd;
use std::time::Instant;

use andrew_tests::live::cell::{CELL, Cell, CellOptions, command, try_command};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{Daemon, seconds};
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open};

/// The attributes of its top are in the kernel: only a request to the program shows that it is dead.
#[test]
fn a_dead_mount_is_mounted_again_by_the_command_that_mounted_it() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("dead-mount");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("dead_mount", seconds(200), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-dead");
    let up = || Cell::up(&netns, scratch.path(), &CellOptions::at("127.0.0.1", "rlidwka"));
    let mount = || Mount::new(&netns, CELL, "127.0.0.1", scratch.path(), "other", &[]);
    for round in 0..3 {
        let (mut cell, mut other) = (up(), mount());
        let tops = [cell.mount().to_owned(), other.path().to_owned()];
        if round == 0 {
            fs::write(tops[0].join("file"), "before").unwrap();
        }
        let look = |top: &std::path::PathBuf| {
            let _ = fs::metadata(top);
            fs::read_to_string(top.join("file"))
        };
        tops.iter().for_each(|top| assert_eq!(look(top).unwrap(), "before", "round {round}"));
        if round == 2 {
            drop(other);
            return cell.stop();
        }
        other.process.kill();
        cell.process.kill();
        tops.iter().for_each(|top| assert!(look(top).is_err()));
        let status = command(&netns, &["status", "--state", cell.state().to_str().unwrap()]);
        assert!(status.contains("`andrew up` or `andrew mount`"), "{status}");
        // It would unmount.
        std::mem::forget(other);
    }
}

/// `tail` has a file of the mount open, in another mount namespace. `andrew umount` fails and says so; the process that serves the mount
/// ends after SIGTERM all the same.
#[test]
fn a_mount_that_another_namespace_holds_ends_with_the_order_to_its_process() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("held-mount");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("held_mount", seconds(200), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-held");
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::at("127.0.0.1", "rlidwka"));
    let mut other = Mount::new(&netns, CELL, "127.0.0.1", scratch.path(), "other", &[]);
    fs::write(other.path().join("file"), "data").unwrap();
    // The namespace has a copy of every mount of the machine: it must not hold those of tests that run at the same time.
    let own = other.path().display();
    let others = "grep ' fuse.andrew ' /proc/mounts | cut -d ' ' -f 2";
    let inside = format!(
        "cd {own}; for at in $({others} | grep -vxF {own}); do umount -l $at; done; exec tail -f file"
    );
    let mut holder = netns.command("unshare");
    holder.args(["--mount", "--propagation", "private", "sh", "-c", &inside]);
    let mut holder = Daemon::start(holder, &scratch.path().join("holder.log"));
    until("the other namespace", seconds(20), || holder.said().contains("data").then_some(()));
    let umounted = try_command(&netns, &["umount", other.path().to_str().unwrap()]);
    let told = String::from_utf8_lossy(&umounted.stderr).into_owned();
    assert!(!umounted.status.success() && told.contains("another mount namespace"), "{told}");
    assert!(other.process.end(seconds(40)).is_some(), "it has not ended");
    holder.kill();
    drop(other);
    cell.stop();
}

/// The mount's process is stopped: `andrew umount` ends at once, leaves the mount and its unsaved data, and prints the command that continues the process.
#[test]
fn a_mount_whose_process_is_stopped_is_not_unmounted_and_one_whose_process_is_dead_is() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("stopped-mount");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("stopped_mount", seconds(200), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-stopped");
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::at("127.0.0.1", "rlidwka"));
    let mut other = Mount::new(&netns, CELL, "127.0.0.1", scratch.path(), "other", &[]);
    let file = other.path().join("file");
    fs::write(&file, "data").unwrap();
    let pid = other.process.pid();
    let umount = || {
        let began = Instant::now();
        let output = try_command(&netns, &["umount", other.path().to_str().unwrap()]);
        assert!(began.elapsed() < seconds(20), "{:?}", began.elapsed());
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    signal(pid, Signal::STOP);
    let (is_done, told) = umount();
    assert!(!is_done && told.contains(&format!("kill -CONT {pid}")), "{told}");
    signal(pid, Signal::CONT);
    assert_eq!(fs::read_to_string(&file).unwrap(), "data", "it goes on");
    let umounted = umount();
    assert!(umounted.0, "{}", umounted.1);
    assert!(other.process.end(seconds(20)).is_some(), "it has not ended");
    drop(other);

    let mut other = Mount::new(&netns, CELL, "127.0.0.1", scratch.path(), "other", &[]);
    other.process.kill();
    let umounted = try_command(&netns, &["umount", other.path().to_str().unwrap()]);
    assert!(umounted.status.success(), "{umounted:?}");
    std::mem::forget(other);
    cell.stop();
}

/// The device stays open when the process of the mount is killed, as by a thread of it that waits in the kernel for a program: here the test
/// holds a descriptor of it. Programs that wait for a reply of the process, and later ones, get an error all the same.
#[test]
fn a_killed_mount_ends_although_its_device_stays_open() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("guarded-mount");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("guarded_mount", seconds(200), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-guarded");
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::at("127.0.0.1", "rlidwka"));
    let mut other = Mount::new(&netns, CELL, "127.0.0.1", scratch.path(), "other", &[]);
    fs::write(cell.mount().join("file"), "data").unwrap();
    let device = device_of(other.process.pid());
    // A request that has no reply while the process is stopped.
    signal(other.process.pid(), Signal::STOP);
    let file = other.path().join("file");
    let reader = std::thread::spawn(move || fs::read(file));
    let path = other.path().to_owned();
    other.process.kill();
    assert_eq!(reader.join().unwrap().map_err(is_dead), Err(true));
    assert_eq!(fs::read(path.join("file")).map_err(is_dead), Err(true));
    drop((device, other));
    cell.stop();
}

/// The descriptor of the device, taken over from the process of a mount.
fn device_of(pid: u32) -> OwnedFd {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().map(|file| file.unwrap());
    let is_device = |file: &fs::DirEntry| fs::read_link(file.path()).is_ok_and(|to| to.ends_with("fuse"));
    let number = files.filter(is_device).find_map(|file| file.file_name().to_str()?.parse().ok()).unwrap();
    let process = pidfd_open(pid_of(pid), PidfdFlags::empty()).unwrap();
    pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).unwrap()
}

fn is_dead(error: std::io::Error) -> bool {
    [Some(Errno::NOTCONN), Some(Errno::CONNABORTED)].contains(&Errno::from_io_error(&error))
}

fn signal(pid: u32, signal: Signal) {
    kill_process(pid_of(pid), signal).unwrap();
}

fn pid_of(pid: u32) -> Pid {
    i32::try_from(pid).ok().and_then(Pid::from_raw).unwrap()
}
