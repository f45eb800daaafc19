//! Honest clients at work during a flood: latency of each call, and refusals.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::{Duration, Instant};

use afs_net::System;
use afs_wire::fs::{CreateFile, FetchStatus, Name, SetStatus, StoreStatus};
use afs_wire::ids::{Fid, Mode};
use afs_wire::rpc::ServiceId;
use afs_wire::vl::{GetEntryByNameU, NameText};
use andrew_tests::hostile::caller::callback_service;
use andrew_tests::live::netns::Netns;
use andrew_tests::sim::identities::Keys;

use super::client::{Client, Who};
use super::flood::round;
use super::latencies::{Latencies, Series};

/// Pause between the calls of one client.
const THINK: Duration = Duration::from_millis(1);
/// Least interval between clients that the server has never seen: in longer runs there are as many, since they all have one address, which
/// has a bounded number of clients.
const NEWCOMERS: Duration = Duration::from_millis(100);

/// An operation that a client repeats, with the least time between two starts.
pub struct Task<'a> {
    pub name: &'static str,
    pub every: Duration,
    pub call: Box<dyn Fn() -> Result<(), String> + Sync + 'a>,
}

/// The host of the honest clients: one with a token and one without, each with a socket of its own, and newcomers.
pub struct HonestClients {
    known: Client,
    nobody: Client,
    /// Number of client names given out.
    names: AtomicU16,
    netns: Netns,
    system: Arc<System>,
    directory: Fid,
    file: Fid,
}

impl HonestClients {
    /// Clients on a host, of which one is a user with that name and a token made with the cell's keys.
    pub fn new(netns: Netns, keys: &Keys, user: &str) -> Self {
        let system = System::with_workers(2).unwrap();
        let client = |who| Client::new(&system, &netns, Ipv4Addr::UNSPECIFIED, callback_service, who);
        let (known, nobody) = (client(Who::user(&system, keys, user, 1)), client(Who::anonymous(2)));
        let locations = nobody.anonymous(7003, ServiceId::LOCATION);
        let name = NameText::new(&b"root.cell"[..]).unwrap();
        let located = system.block_on(locations.call(&GetEntryByNameU { name })).unwrap();
        let directory = Fid::root(located.entry.ids[0]);
        let (name, status) = (Name::truncated(b"honest"), SetStatus::default());
        let file = known.call(&CreateFile { dir: directory, name, status }).unwrap().fid;
        let names = AtomicU16::new(10);
        Self { known, nobody, names, netns, system, directory, file }
    }

    /// The cell's top directory.
    pub fn directory(&self) -> Fid {
        self.directory
    }

    /// The file that the user changes repeatedly.
    pub fn file(&self) -> Fid {
        self.file
    }

    /// The pool and the clock.
    pub fn system(&self) -> &Arc<System> {
        &self.system
    }

    /// The client without a token.
    pub fn nobody(&self) -> &Client {
        &self.nobody
    }

    /// Runs all clients' own tasks and the additional `tasks` until `meanwhile` returns; returns the latencies of the
    /// calls.
    pub fn watch<T>(&self, tasks: &[Task<'_>], meanwhile: impl FnOnce() -> T) -> (Latencies, T) {
        let (stop, own) = (AtomicBool::new(false), self.tasks());
        std::thread::scope(|scope| {
            let stop = &stop;
            let at_work: Vec<_> =
                own.iter().chain(tasks).map(|task| scope.spawn(move || task.repeat(stop))).collect();
            // The others stop even if `meanwhile` panics.
            let stop_on_drop = StopOnDrop(stop);
            let done = meanwhile();
            drop(stop_on_drop);
            (Latencies(at_work.into_iter().map(|one| one.join().unwrap()).collect()), done)
        })
    }

    fn tasks(&self) -> [Task<'_>; 4] {
        let read = |client: &Client| client.call(&FetchStatus { fid: self.directory }).map(drop);
        let read_as_nobody =
            |client: &Client| client.call_until_free(&FetchStatus { fid: self.directory }).map(drop);
        [
            Task { name: "reads with a token", every: THINK, call: Box::new(move || read(&self.known)) },
            Task { name: "changes with a token", every: THINK, call: Box::new(|| self.change()) },
            Task {
                name: "reads without a token",
                every: THINK,
                call: Box::new(move || read_as_nobody(&self.nobody)),
            },
            Task {
                name: "first calls without a token",
                every: NEWCOMERS.max(round() / 100),
                call: Box::new(move || read_as_nobody(&self.newcomer())),
            },
        ]
    }

    /// A change is on disk before the reply, and every client with a promise has been notified.
    fn change(&self) -> Result<(), String> {
        let mode = Mode(0o600 | u32::from(self.names.load(Ordering::Relaxed)) & 0o77);
        let status = SetStatus { mode: Some(mode), ..SetStatus::default() };
        self.known.call(&StoreStatus { fid: self.file, status }).map(drop)
    }

    /// A client that the server has never seen.
    fn newcomer(&self) -> Client {
        let name = self.names.fetch_add(1, Ordering::Relaxed);
        Client::new(&self.system, &self.netns, Ipv4Addr::UNSPECIFIED, callback_service, Who::anonymous(name))
    }
}

impl Task<'_> {
    fn repeat(&self, stop: &AtomicBool) -> Series {
        let mut series = Series::new(self.name);
        while !stop.load(Ordering::Relaxed) {
            let began = Instant::now();
            series.time(&self.call);
            std::thread::sleep(self.every.saturating_sub(began.elapsed()).max(THINK));
        }
        series
    }
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
