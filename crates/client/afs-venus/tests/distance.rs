//! A reader far from a server that has a small window and few threads for all of its clients, as OpenAFS's.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_sim::LinkConfig;
use afs_venus::{Limits, OpenFlags};
use afs_wire::vl::SiteFlags;
use common::fakes::{Fakes, Image, RW};
use common::pattern;

const LENGTH: usize = 16 << 20;
const READ: usize = 128 << 10;
/// Threads of a server with the default options (docs/protocol/fileserver.md, T25).
const THREADS: usize = 9;
/// Packets of a call that it has under way.
const WINDOW: u32 = 32;

/// What became of a reader, and of another client of the server meanwhile.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// Of the whole file.
    took: Duration,
    /// The longest of the stores of a byte that the other client made, one after the other.
    longest: Duration,
}

impl Outcome {
    fn bytes_per_second(&self) -> u64 {
        (LENGTH as f64 / self.took.as_secs_f64()) as u64
    }
}

/// Reads a file in sequence at such a distance.
fn read_at(round_trip: Duration, change: impl FnOnce(&mut Limits)) -> Outcome {
    let data = pattern(LENGTH, 1);
    let image = Image::new(100).with("big", &data).with("small", b"");
    let mut cell = Fakes::new(1, 1, 1);
    cell.set_limits(|limits| {
        *limits = Limits::default();
        change(limits);
    });
    let server = &cell.servers[0];
    let mut config = afs_rx::Config::default();
    config.send_window = WINDOW;
    // A quarter is for authenticated callers, of whom there is none.
    let limits = afs_rpc::Limits { calls: THREADS * 4 / 3, ..afs_rpc::Limits::default() };
    let at = SocketAddr::new(server.address.into(), 7000);
    server.serve(cell.sim.rx(server.node, cell.sim.env(server.node), at, config, limits));
    server.host(RW, &Arc::new(Mutex::new(image)), true);
    cell.locate(&[(0, SiteFlags::RW_VOLUME)]);
    cell.sim.set_link(LinkConfig {
        latency_min: round_trip / 2,
        latency_max: round_trip / 2,
        ..LinkConfig::default()
    });
    let (reader, other) = (cell.client(0), cell.client(1));
    let took = Arc::new(Mutex::new(None));
    let (here, told, world) = (reader.clone(), took.clone(), cell.sim.world());
    reader.env.spawn(Box::pin(async move {
        let began = world.now();
        let handle = here.open("big", OpenFlags::READ).await.unwrap();
        let mut read = Vec::new();
        while read.len() < LENGTH {
            read.extend_from_slice(&here.venus.read(handle, read.len() as u64, READ).await.unwrap());
        }
        assert!(read == data);
        *told.lock().unwrap() = Some(world.now() - began);
    }));
    let (there, reading, world) = (other.clone(), took.clone(), cell.sim.world());
    let longest = cell.on(&other, async move {
        let mut longest = Duration::ZERO;
        while reading.lock().unwrap().is_none() {
            let began = world.now();
            there.put("small", b"x").await.unwrap();
            longest = longest.max(world.now() - began);
        }
        longest
    });
    let took = took.lock().unwrap().unwrap();
    Outcome { took, longest }
}

const NEAR: Duration = Duration::from_micros(500);
const FAR: Duration = Duration::from_millis(50);

fn three_calls(limits: &mut Limits) {
    limits.calls_per_far_reader = 3;
}

#[test]
fn a_reader_far_away_has_twice_as_many_calls_and_others_wait_no_longer_for_it() {
    let (three, default) = (read_at(FAR, three_calls), read_at(FAR, |_| ()));
    assert!(default.took * 19 < three.took * 10, "{default:?}, {three:?}");
    assert_eq!(default.longest, three.longest);
}

#[test]
fn a_reader_nearby_has_three_calls() {
    let (three, default) = (read_at(NEAR, three_calls), read_at(NEAR, |_| ()));
    assert_eq!(default.took, three.took);
}

#[test]
#[ignore = "prints a table"]
fn rates_by_distance_and_calls() {
    for round_trip in [500, 5_000, 50_000].map(Duration::from_micros) {
        for calls in [1, 2, 3, 4, 6, 8, 9] {
            let outcome = read_at(round_trip, |limits| {
                (limits.calls_per_reader, limits.calls_per_far_reader) = (calls, calls);
            });
            let rate = outcome.bytes_per_second() as f64 / 1e6;
            println!("{round_trip:?}: {calls} calls, {rate:.2} MB/s, {outcome:?}");
        }
        println!("{round_trip:?}: default, {:?}", read_at(round_trip, |_| ()));
    }
}
