//! The data path in front of calls: cut at every byte, and with drives that do anything. Programs notice nothing.

mod bounds;
mod conduct;
mod cut;
mod drive;
mod faulty;
mod file;
mod kit;
mod server;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_datapath::session::Failure;

use conduct::{Conduct, wrong};
use drive::Drive;
use kit::{Kit, LENGTH, pattern};

use crate::api::OpenFlags;
use crate::config::{DataPathConfig, VenusConfig};
use crate::counters::CounterValues;
use crate::error::Result;
use crate::venus::Venus;

/// A client that uses the path for every byte, and its server.
struct Over {
    kit: Kit,
    drive: Arc<Drive>,
}

/// Of a client that uses the path for every byte, also without TLS.
fn clear() -> DataPathConfig {
    DataPathConfig { minimum_size: Some(1), allow_clear: true, ..DataPathConfig::default() }
}

fn over(seed: u64, conduct: Conduct) -> Over {
    over_with(seed, conduct, clear())
}

fn over_with(seed: u64, conduct: Conduct, config: DataPathConfig) -> Over {
    over_of(seed, conduct, config, Venus::start)
}

/// The same, with a client that `start` starts.
fn over_of<F>(
    seed: u64,
    conduct: Conduct,
    config: DataPathConfig,
    start: impl FnOnce(VenusConfig) -> F,
) -> Over
where
    F: Future<Output = Result<Arc<Venus>>> + Send + 'static,
{
    let file = Kit::file();
    let drive = Drive::new(file.clone(), conduct);
    let calls = |sim: &afs_sim::Sim, node| {
        drive.listen(sim.env(node));
        server::with_drive(&file, &drive, sim.env(node))
    };
    let kit = Kit::made(seed, file.clone(), calls, config, start);
    Over { kit, drive }
}

impl Over {
    fn counters(&self) -> CounterValues {
        self.kit.venus.counters()
    }

    fn call(&self, name: &str) -> u64 {
        self.counters().calls.get(name).copied().unwrap_or_default()
    }

    /// Fallbacks that a test does not expect while a connection is opened.
    fn reasons(&self) -> Vec<&'static str> {
        let reasons = self.counters().path_fallbacks.into_iter();
        reasons.filter(|(name, _)| *name != "connecting").map(|(name, _)| name).collect()
    }

    /// Reads all of a version that was stored elsewhere, and that is not here.
    #[track_caller]
    fn read_new(&self, seed: u64, what: &str) {
        self.kit.change(seed);
        let handle = self.kit.open(OpenFlags::WRITE).unwrap();
        let read = self.kit.read(handle);
        assert_eq!(read.as_deref().ok(), Some(&pattern(seed)[..]), "{what}: {read:?}");
        self.kit.release(handle);
    }

    /// Stores all of the file as one version.
    #[track_caller]
    fn store_all(&self, seed: u64, what: &str) {
        let handle = self.kit.open(OpenFlags::READ_WRITE).unwrap();
        let before = self.kit.at_server().1;
        self.kit.write(handle, 0, pattern(seed));
        self.kit.flush(handle).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(self.kit.at_server() == (pattern(seed), before + 1), "{what}");
        assert!(!self.kit.data().content().is_dirty(), "{what}");
        self.kit.release(handle);
    }

    /// Stores two ranges of the file as one version.
    #[track_caller]
    fn store_ranges(&self, seed: u64, what: &str) {
        self.kit.change(seed);
        // Not fetched, so that the ranges are not sent as one with what lies between them.
        let handle = self.kit.open(OpenFlags::WRITE).unwrap();
        let (mut wanted, before) = self.kit.at_server();
        for range in RANGES {
            let bytes = pattern(seed + 1)[range.start as usize..range.end as usize].to_vec();
            wanted[range.start as usize..range.end as usize].copy_from_slice(&bytes);
            self.kit.write(handle, range.start, bytes);
        }
        self.kit.flush(handle).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(self.kit.at_server() == (wanted, before + 1), "{what}");
        self.kit.release(handle);
    }
}

/// What [`Over::store_ranges`] changes.
const RANGES: [Range<u64>; 2] = [10..60, 200..290];
/// Long enough for a connection to be opened, or not.
const OPENING: Duration = Duration::from_secs(20);

#[test]
fn reads_and_stores_go_by_the_path_and_one_capability_for_each_use_is_asked_for() {
    let over = over(1, Conduct::Right);
    over.read_new(1, "by calls, while the connection is opened");
    assert_eq!((over.call("FetchData64"), over.counters().path_bytes_fetched), (1, 0));
    over.kit.pass(OPENING);
    for seed in 2..20 {
        over.read_new(seed, "by the path");
        over.store_all(seed + 100, "by the path");
        over.store_ranges(seed + 200, "by the path");
    }
    let counters = over.counters();
    assert_eq!(counters.path_fallbacks.keys().collect::<Vec<_>>(), [&"connecting"]);
    assert_eq!((over.call("FetchData64"), over.call("StoreData64"), over.call("StoreRanges")), (1, 0, 0));
    assert_eq!((over.call("Commit"), over.call("GetCapability"), over.call("DataPath")), (36, 2, 1));
    assert!(counters.path_bytes_fetched >= 18 * LENGTH);
    assert_eq!((counters.path_bytes_stored, counters.path_connections), (18 * (LENGTH + 140), 1));
}

#[test]
fn programs_get_right_bytes_in_bounded_time_whatever_a_drive_does() {
    for (seed, conduct) in wrong().enumerate() {
        let over = over(seed as u64, conduct);
        let what = format!("seed {seed}, {conduct:?}");
        over.read_new(1, &what);
        over.kit.pass(OPENING);
        for round in 0..12 {
            let began = over.kit.sim.now();
            over.read_new(2 + round, &what);
            over.store_all(100 + round, &what);
            over.store_ranges(200 + 2 * round, &what);
            let took = over.kit.sim.now().saturating_since(began);
            assert!(took < Duration::from_secs(50), "{what}: {took:?}");
        }
        // Bytes that follow those which were announced harm nobody.
        assert!(conduct == Conduct::Endless || !over.reasons().is_empty(), "{what}");
        // Whatever fails again and again is not tried again and again.
        let requests = over.drive.requests.load(Ordering::SeqCst);
        let is_harmless = matches!(conduct, Conduct::Endless | Conduct::Fails(Failure::OtherVersion));
        assert!(is_harmless || requests <= 24, "{what}: {requests}");
    }
}

#[test]
fn a_path_that_has_failed_is_left_alone_for_a_minute_and_tried_again_then() {
    let over = over(1, Conduct::Garbage);
    let connections = || over.drive.connections.load(Ordering::SeqCst);
    over.read_new(1, "opening");
    over.kit.pass(OPENING);
    over.read_new(2, "failing");
    assert_eq!((connections(), over.reasons()), (1, vec!["protocol"]));
    *over.drive.conduct.lock() = Conduct::Right;
    over.kit.pass(Duration::from_secs(50));
    over.read_new(3, "left alone");
    assert_eq!((connections(), over.reasons()), (1, vec!["paused", "protocol"]));
    over.kit.pass(Duration::from_secs(15));
    over.read_new(4, "opening");
    over.kit.pass(OPENING);
    let before = over.counters().path_bytes_fetched;
    over.read_new(5, "by the path");
    assert_eq!((connections(), over.counters().path_bytes_fetched), (2, before + LENGTH));
}

#[test]
fn an_idle_connection_is_closed_and_opened_again() {
    let over = over(1, Conduct::Right);
    over.read_new(1, "opening");
    over.kit.pass(OPENING);
    over.read_new(2, "by the path");
    assert_eq!(over.kit.sim.stream_count(), 1);
    over.kit.pass(Duration::from_secs(120));
    assert_eq!(over.kit.sim.stream_count(), 0);
    over.read_new(3, "opening");
    over.kit.pass(OPENING);
    over.read_new(4, "by the path");
    assert_eq!((over.counters().path_bytes_fetched, over.counters().path_connections), (2 * LENGTH, 2));
    assert_eq!(over.reasons(), [""; 0]);
}

#[test]
fn a_mount_that_may_not_use_the_path_asks_nobody_for_it() {
    let config = DataPathConfig { enabled: false, ..DataPathConfig::default() };
    let over = over_with(1, Conduct::Right, config);
    over.read_new(1, "by calls");
    over.kit.pass(OPENING);
    over.read_new(2, "by calls");
    assert_eq!((over.call("DataPath"), over.drive.connections.load(Ordering::SeqCst)), (0, 0));
}

#[test]
fn small_ranges_are_moved_by_calls() {
    let config = DataPathConfig { allow_clear: true, ..DataPathConfig::default() };
    let over = over_with(1, Conduct::Right, config);
    over.read_new(1, "by calls");
    assert_eq!((over.call("DataPath"), over.call("FetchData64")), (0, 1));
}

#[test]
fn a_drive_with_another_key_than_was_told_gets_no_request_and_is_counted() {
    let config = DataPathConfig { minimum_size: Some(1), ..DataPathConfig::default() };
    let file = Kit::file();
    let told = Drive::new(file.clone(), Conduct::Right);
    let calls = |sim: &afs_sim::Sim, node| {
        drive::listen_with_tls(sim.env(node));
        server::with_drive(&file, &told, sim.env(node))
    };
    let kit = Kit::made(1, file.clone(), calls, config, Venus::start);
    let over = Over { kit, drive: told };
    over.read_new(1, "opening");
    over.kit.pass(OPENING);
    over.read_new(2, "by calls");
    assert_eq!(over.reasons(), ["paused", "wrong_key"]);
    assert_eq!((over.counters().path_connections, over.counters().path_bytes_fetched), (0, 0));
}

#[test]
fn a_drive_that_cannot_prove_its_key_gets_no_request() {
    let config = DataPathConfig { minimum_size: Some(1), ..DataPathConfig::default() };
    let over = over_with(1, Conduct::Right, config);
    over.read_new(1, "opening");
    over.kit.pass(OPENING);
    over.read_new(2, "by calls");
    over.store_all(3, "by calls");
    assert_eq!(over.drive.requests.load(Ordering::SeqCst), 0);
    assert!(over.drive.connections.load(Ordering::SeqCst) == 1 && over.reasons().contains(&"paused"));
}

#[test]
fn a_server_of_which_only_the_path_is_heard_is_probed_all_the_same() {
    let over = over(1, Conduct::Right);
    over.read_new(1, "opening");
    over.kit.pass(OPENING);
    let handle = over.kit.open(OpenFlags::WRITE).unwrap();
    let before = over.call("GetTime");
    for _ in 0..20 {
        // The cache forgets, the promise holds: nothing but the path is used.
        over.kit.data().content().present = crate::cache::Ranges::new();
        assert_eq!(over.kit.read(handle).unwrap(), over.kit.at_server().0);
        over.kit.pass(Duration::from_secs(10));
    }
    assert_eq!(over.call("FetchData64"), 1);
    assert!(over.call("GetTime") > before);
}
