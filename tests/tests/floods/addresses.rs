//! Two hundred addresses of an attacker's own against the file server, a drive and the login service: datagrams of new connections, and
//! streams that are held in silence and opened again. Meanwhile the file server is started again, and has its drive.

use std::fs;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use afs_sim::SimRng;
use afs_wire::fs::{FetchStatus, GetTime};
use afs_wire::ids::Fid;
use afs_wire::rpc::{ServiceId, encode_call};
use andrew_tests::hostile::process::resident_kib;
use andrew_tests::live::cell::{CELL, Cell, CellOptions};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::seconds;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, connect, recv, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::calls::{NULL, data, fresh};
use super::crowd::{ANSWERING, Crowd, address};
use super::flood::{Flood, answering, give_way, number_of, round};
use super::honest_clients::Task;
use super::login;
use super::setup::{CLIENTS, CROWD, SERVER, Setup, server_at};
use crate::drive_hosts::drive::Drive;

const ADDRESSES: u16 = 200;
/// Streams of each, of all together more than a drive has.
const STREAMS: usize = 8;
const DRIVE_PORT: u16 = 7010;
/// Most memory that a target may use for it: that of other floods of its kind.
const GROWTH_KIB_MAX: u64 = 192 << 10;
/// Time between two logins. Each costs its client a fifth of a second of a processor, which are the server's processors here.
const LOGINS: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);
const STARTS: usize = 3;

/// What is attacked, and how.
struct Target<'a> {
    name: &'static str,
    pid: u32,
    /// The port at which streams are held.
    streams: Option<u16>,
    /// Datagrams a second.
    rate: u64,
    wave: &'a (dyn Fn(&Crowd, &mut SimRng) -> u64 + Sync),
}

/// Holders of streams that say nothing.
#[derive(Default)]
struct Strangers {
    opened: AtomicU64,
    is_over: AtomicBool,
}

#[test]
fn two_hundred_addresses_keep_nobody_out_of_server_drive_and_login() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let Some(mut setup) = Setup::new("floods-addresses") else { return };
    let drive = with_drive(&setup);
    let log_in = login::prepare(&setup);
    let mount = Mount::new(
        &setup.lan.netns(CLIENTS),
        CELL,
        &setup.lan.address(SERVER),
        setup.scratch.path(),
        "honest",
        &[],
    );
    let stored = mount.path().join("stored");
    let turn = AtomicU64::new(0);
    let store = || {
        let bytes = [turn.fetch_add(1, Ordering::Relaxed) as u8; 100_000];
        fs::write(&stored, bytes).map_err(|error| error.to_string())
    };
    fs::write(mount.path().join("far"), vec![7; 3 << 20]).unwrap();
    let tasks = [
        Task { name: "logins", every: LOGINS, call: Box::new(log_in) },
        Task { name: "stores at the drive", every: PAUSE, call: Box::new(store) },
    ];
    let directory = setup.honest.directory();
    let (begun, none) = (login::begin(&setup), |_: &Crowd, _: &mut SimRng| 1);
    let server = setup.cell.process.pid();
    let calls = move |crowd: &Crowd, rng: &mut SimRng| call(crowd, rng, directory);
    let logins = move |crowd: &Crowd, rng: &mut SimRng| login::start(crowd, rng, &begun, ADDRESSES);
    raise_limit();
    for target in [
        Target { name: "file server", pid: server, streams: Some(7000), rate: 3000, wave: &calls },
        Target { name: "drive", pid: drive.pid(), streams: Some(DRIVE_PORT), rate: 0, wave: &none },
        Target { name: "login", pid: server, streams: None, rate: 3000, wave: &logins },
    ] {
        attack(&setup, &target, &tasks);
    }
    drop(tasks);
    drop(mount);
    let quiet = starts(&mut setup, "quiet");
    let strangers = Strangers::default();
    let flooded = strangers.while_held(setup.lan.netns(CROWD), DRIVE_PORT, || starts(&mut setup, "flooded"));
    println!(
        "the file server reads from its drive: {quiet:.2?} after a start, {flooded:.2?} while strangers hold the drive's places"
    );
    if let Some(most) = number_of("ANDREW_FLOOD_RESTART_MAX") {
        assert!(flooded.as_secs_f64() <= most, "{flooded:?} after a start");
    }
}

fn with_drive(setup: &Setup) -> Drive {
    let at = format!("{}:{DRIVE_PORT}", setup.lan.address(SERVER));
    let drive = Drive::start(setup.lan.netns(SERVER), setup.scratch.path(), "far", &at);
    setup.andrew(&["drive", "add", "far", "--address", &drive.address, "--join-key", &drive.join_key_file()]);
    setup.andrew(&["drive", "use", "far"]);
    drive
}

/// Honest clients without the attack and during it.
fn attack(setup: &Setup, target: &Target<'_>, tasks: &[Task<'_>]) {
    let (quiet, ()) = setup.honest.watch(tasks, || std::thread::sleep(round().min(seconds(20)) / 2));
    quiet.assert_served("without a flood");
    let before = resident_kib(target.pid);
    let (strangers, most) = (Strangers::default(), AtomicU64::new(0));
    let flood = Flood { rate: target.rate, ..Flood::of(target.name, target.wave) };
    let pour = || {
        if target.rate > 0 {
            flood.pour(&setup.crowd, 1)
        } else {
            std::thread::sleep(round());
            0
        }
    };
    let (during, sent) = setup.honest.watch(tasks, || {
        std::thread::scope(|scope| {
            scope.spawn(|| strangers.weigh(target.pid, &most));
            strangers.while_held(setup.lan.netns(CROWD), target.streams.unwrap_or(0), pour)
        })
    });
    let (opened, most) = (strangers.opened.into_inner(), most.into_inner());
    let after = resident_kib(target.pid);
    println!(
        "{}: {sent} datagrams and {opened} streams of {ADDRESSES} addresses in {:?}",
        target.name,
        round()
    );
    println!("{}", during.table(&quiet));
    println!("memory {} MiB before, at most {} MiB, {} MiB after", before >> 10, most >> 10, after >> 10);
    during.assert_served(target.name);
    assert!(target.streams.is_none() || opened >= u64::from(ADDRESSES) * STREAMS as u64, "{opened} streams");
    assert!(target.rate == 0 || sent >= u64::from(ADDRESSES), "{sent} datagrams");
    assert!(most <= before + GROWTH_KIB_MAX, "{before} KiB, then {most} KiB");
    if let Some(times) = number_of("ANDREW_FLOOD_P99_MAX") {
        let slowdown = during.slowdown(&quiet);
        assert!(slowdown <= times, "{}: the p99 is {slowdown:.1} times that without a flood", target.name);
    }
}

/// A new connection of one of the addresses, with a call that anybody may make, whole or not.
fn call(crowd: &Crowd, rng: &mut SimRng, directory: Fid) -> u64 {
    let (from, line, whole) =
        (answering(rng, ADDRESSES), fresh(rng, ServiceId::FILE.0, NULL), rng.chance(700_000));
    let request = match rng.below(2) {
        0 => encode_call(&GetTime {}),
        _ => encode_call(&FetchStatus { fid: directory }),
    };
    crowd.send(from, server_at(7000), &data(line, 0, 1, whole, &request));
    1
}

/// The longest time from the start of the file server until a file of its drive is read, of several.
fn starts(setup: &mut Setup, name: &str) -> Duration {
    let (address, netns) = (setup.lan.address(SERVER), setup.lan.netns(SERVER));
    let start = |n: usize| {
        setup.cell.kill();
        let began = Instant::now();
        setup.cell = Cell::serve(&netns, setup.scratch.path(), &CellOptions::at(&address, "rlidwka"));
        let served = began.elapsed();
        let reader = Mount::new(
            &setup.lan.netns(CLIENTS),
            CELL,
            &address,
            setup.scratch.path(),
            &format!("{name}{n}"),
            &[],
        );
        let mounted = began.elapsed();
        assert!(fs::read(reader.path().join("far")).unwrap() == vec![7; 3 << 20]);
        println!(
            "{name}: it serves after {served:.2?}, is mounted after {mounted:.2?}, read after {:.2?}",
            began.elapsed()
        );
        began.elapsed()
    };
    (0..STARTS).map(start).max().unwrap_or_default()
}

impl Strangers {
    /// Works while streams to a port of the servers are held; none if that is 0.
    fn while_held<T>(&self, netns: Netns, port: u16, work: impl FnOnce() -> T) -> T {
        std::thread::scope(|scope| {
            let _end = End(self);
            if port > 0 {
                scope.spawn(move || netns.inside(|| self.hold(port)));
            }
            work()
        })
    }

    /// Opens each stream again that is ended.
    fn hold(&self, port: u16) {
        give_way(true);
        let mut held: Vec<Vec<OwnedFd>> = (0..ADDRESSES).map(|_| Vec::new()).collect();
        while !self.is_over.load(Ordering::Relaxed) {
            for (number, held) in (0..).zip(&mut held) {
                held.retain(|socket| recv(socket, &mut [0u8; 16], RecvFlags::PEEK) == Err(Errno::AGAIN));
                while held.len() < STREAMS {
                    held.push(stream(number, port));
                    self.opened.fetch_add(1, Ordering::Relaxed);
                }
            }
            // So that the honest have some of the processor.
            std::thread::sleep(PAUSE);
        }
    }

    /// Records the most memory of a process.
    fn weigh(&self, pid: u32, most: &AtomicU64) {
        while !self.is_over.load(Ordering::Relaxed) {
            most.fetch_max(resident_kib(pid), Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(100));
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

/// Begun, and perhaps not there yet.
fn stream(number: u16, port: u16) -> OwnedFd {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
    bind(&socket, &std::net::SocketAddrV4::new(address(ANSWERING + number), 0)).unwrap();
    match connect(&socket, &server_at(port)) {
        Ok(()) | Err(Errno::INPROGRESS) => socket,
        Err(error) => panic!("a stranger cannot connect: {error}"),
    }
}

/// Room for the descriptors of all streams.
fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}
