//! Two hundred addresses that hold the connections of a drive in silence, and its file server, which is started again meanwhile.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use andrew_tests::live::cell::{CELL, Cell, CellOptions, command};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::netns_thread::in_namespace;
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, connect, recv, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::drive_hosts::drive::Drive;

const NETNS: &str = "andrew-silent";
const SERVER: &str = "127.0.0.1";
const DRIVE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const DRIVE_PORT: u16 = 7010;
const ADDRESSES: u8 = 200;
/// More than the drive has places, of all of them together.
const CONNECTIONS: usize = 8;
const MIB: usize = 1 << 20;
const PAUSE: Duration = Duration::from_millis(5);

/// What strangers have done so far.
#[derive(Default)]
struct Strangers {
    opened: AtomicUsize,
    is_over: AtomicBool,
}

impl Strangers {
    /// Holds connections that say nothing, and opens each again that is ended.
    fn hold(&self) {
        let mut held: Vec<Vec<OwnedFd>> = (0..ADDRESSES).map(|_| Vec::new()).collect();
        while !self.is_over.load(Ordering::Relaxed) {
            for (number, held) in (0..).zip(&mut held) {
                held.retain(|socket| recv(socket, &mut [0u8; 16], RecvFlags::PEEK) == Err(Errno::AGAIN));
                while held.len() < CONNECTIONS {
                    held.push(connection(number));
                    self.opened.fetch_add(1, Ordering::Relaxed);
                }
            }
            // So that the honest have some of the processor.
            std::thread::sleep(PAUSE);
        }
    }
}

/// Ends the strangers also when the test fails.
struct End<'a>(&'a Strangers);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

/// Room for the descriptors of all connections.
fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

/// Begun, and perhaps not there yet.
fn connection(number: u8) -> OwnedFd {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::new(127, 1, 0, number), 0)).unwrap();
    match connect(&socket, &SocketAddrV4::new(DRIVE, DRIVE_PORT)) {
        Ok(()) | Err(Errno::INPROGRESS) => socket,
        Err(error) => panic!("a stranger cannot connect: {error}"),
    }
}

#[test]
fn a_file_server_that_is_started_again_has_its_drive_while_strangers_hold_its_connections() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("silent-strangers");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("silent_strangers", seconds(300), move || unmount_below(&folder));
    let netns = Netns::fresh(NETNS);
    let drive = Drive::start(Netns::existing(NETNS), scratch.path(), "big", &format!("{DRIVE}:{DRIVE_PORT}"));
    let options = CellOptions::at(SERVER, "rlidwka");
    let mut cell = Cell::serve(&netns, scratch.path(), &options);
    let state = cell.state().display().to_string();
    let administer = |words: &[&str]| command(&netns, &[words, &["--state", &state]].concat());
    administer(&["drive", "add", "big", "--address", &drive.address, "--join-key", &drive.join_key_file()]);
    administer(&["drive", "use", "big"]);
    let content: Vec<u8> = (0..3 * MIB).map(|at| (at % 251) as u8).collect();
    let first = Mount::new(&netns, CELL, SERVER, scratch.path(), "first", &[]);
    fs::write(first.path().join("far"), &content).unwrap();
    drop(first);

    raise_limit();
    let strangers = Strangers::default();
    std::thread::scope(|scope| {
        let end = End(&strangers);
        let hold = scope.spawn(|| in_namespace(NETNS, || strangers.hold()));
        let goes_on = |more: usize| {
            let before = strangers.opened.load(Ordering::Relaxed);
            until("connections of strangers", seconds(60), || {
                let opened = strangers.opened.load(Ordering::Relaxed);
                (opened >= before + more || hold.is_finished()).then_some(())
            });
            assert!(!hold.is_finished());
        };
        goes_on(usize::from(ADDRESSES) * CONNECTIONS);
        goes_on(200);
        for round in ["second", "third", "fourth"] {
            cell.kill();
            cell = Cell::serve(&netns, scratch.path(), &options);
            let mount = Mount::new(&netns, CELL, SERVER, scratch.path(), round, &[]);
            assert!(fs::read(mount.path().join("far")).unwrap() == content);
            goes_on(200);
        }
        drop(end);
    });
    cell.stop();
}
