//! Simulated machines that share a directory, under kernels that hold its lock: names are replaced by racing renames while others
//! open and read them, and a file is rewritten in place. Nothing waits for its own kernel until a time limit ends that.
//!
//! `ANDREW_SEEDS=N` runs that many worlds, `ANDREW_SEED=S` the one of that seed.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afs_fuse::NameAccess;
use afs_sim::SimRng;
use afs_venus::{NodeId, OpenFlags, VenusError};
use andrew_tests::sim::cell::Cell;
use andrew_tests::sim::history::History;
use andrew_tests::sim::kernel::Kernel;
use andrew_tests::sim::user::User;
use bytes::Bytes;

const RUN: Duration = Duration::from_secs(600);
const MACHINES: usize = 3;
const PROGRAMS: usize = 2;
const ROUNDS: usize = 8;
/// What all programs replace by a rename, and what they rewrite in place.
const REPLACED: &str = "replaced";
const REWRITTEN: &str = "rewritten";
const LENGTH: usize = 3000;

#[test]
fn machines_that_share_a_directory_never_wait_for_their_own_kernel() {
    let number = |variable| std::env::var(variable).ok().and_then(|text| text.parse().ok());
    match number("ANDREW_SEED") {
        Some(seed) => drop(run(seed)),
        None => {
            let epochs: u64 = (0..number("ANDREW_SEEDS").unwrap_or(20)).map(run).sum();
            assert!(epochs > 0, "no request ever held the lock that a break needed");
        }
    }
}

/// Runs one world. Returns how often a request held the lock that a break needed.
fn run(seed: u64) -> u64 {
    let cell = Cell::new(seed);
    cell.start();
    let (history, mut rng) = (History::new(cell.sim.world()), SimRng::new(seed));
    let machines: Vec<(User, Kernel)> =
        (0..MACHINES).map(|n| cell.user_with_kernel(n, &history, rng.fork()).unwrap()).collect();
    let first = Program::of(&machines[0], 0);
    let made = cell.sim.block_on(machines[0].0.node, RUN, async move {
        first.write(REPLACED, 0).await?;
        first.write(REWRITTEN, 0).await
    });
    made.unwrap().unwrap();
    let left = Arc::new(AtomicUsize::new(MACHINES * PROGRAMS));
    for (number, machine) in (0..PROGRAMS).flat_map(|_| machines.iter()).enumerate() {
        let (program, left, rng) = (Program::of(machine, number), left.clone(), rng.fork());
        machine.0.env.spawn(Box::pin(async move {
            program.work(seed, rng).await;
            left.fetch_sub(1, Ordering::Relaxed);
        }));
    }
    cell.sim.run_until(RUN, || left.load(Ordering::Relaxed) == 0).unwrap();
    cell.sim.run_for(Duration::from_secs(1));
    for (user, _) in &machines {
        assert_eq!(user.venus.counters().kernel_waits_cut, 0, "seed {seed}: a time limit had to act");
        let looking = user.clone();
        let seen = cell.sim.block_on(user.node, RUN, async move { names(&looking).await });
        assert_eq!(seen.unwrap(), expected(), "seed {seed}");
    }
    machines.iter().map(|(_, kernel)| kernel.epochs()).sum()
}

fn expected() -> BTreeSet<String> {
    let programs = (0..MACHINES * PROGRAMS).map(|number| format!("{number}"));
    programs.chain([REPLACED.to_owned(), REWRITTEN.to_owned()]).collect()
}

async fn names(user: &User) -> BTreeSet<String> {
    let listed = user.venus.readdir(NodeId::ROOT, 0, 1000).await.unwrap();
    let names = listed.into_iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned());
    names.filter(|name| !name.starts_with('.')).collect()
}

/// A program on one of the machines.
struct Program {
    user: User,
    kernel: Kernel,
    number: usize,
}

impl Program {
    fn of((user, kernel): &(User, Kernel), number: usize) -> Self {
        Self { user: user.clone(), kernel: kernel.clone(), number }
    }

    /// Changes names of its own, replaces and rewrites what all do, and reads both.
    async fn work(&self, seed: u64, mut rng: SimRng) {
        for round in 0..ROUNDS {
            let done = match rng.below(4) {
                0 => self.rewrite(round).await,
                1 => self.put(REPLACED, round).await,
                _ => self.put(&format!("{}", self.number), round).await,
            };
            done.unwrap_or_else(|error| panic!("seed {seed}, program {}: {error}", self.number));
            for name in [REPLACED, REWRITTEN] {
                let data = self.read(name).await;
                let data =
                    data.unwrap_or_else(|error| panic!("seed {seed}, {}, {name}: {error}", self.number));
                assert!(
                    data.len() == LENGTH && data.iter().all(|byte| *byte == data[0]),
                    "seed {seed}: {name} is torn"
                );
            }
        }
        self.put(&format!("{}", self.number), 0).await.unwrap();
    }

    /// A new file that a rename puts in the place of another one.
    async fn put(&self, name: &str, round: usize) -> Result<(), VenusError> {
        let new = format!("new{}", self.number);
        self.write(&new, round).await?;
        let rename = self.user.venus.rename(NodeId::ROOT, new.as_bytes(), NodeId::ROOT, name.as_bytes());
        self.kernel.request(NodeId::ROOT, NameAccess::Changes, rename).await
    }

    async fn write(&self, name: &str, round: usize) -> Result<(), VenusError> {
        let venus = &self.user.venus;
        let create = venus.create(NodeId::ROOT, name.as_bytes(), 0o644, OpenFlags::WRITE);
        let (entry, opened) = self.kernel.request(NodeId::ROOT, NameAccess::Changes, create).await?;
        venus.write(opened.handle, 0, self.content(round)).await?;
        venus.flush(opened.handle, 0).await?;
        self.kernel.release(venus, opened.handle);
        venus.forget(entry.node, 1);
        Ok(())
    }

    /// As editors do that keep the file: the bytes of before are there until the close.
    async fn rewrite(&self, round: usize) -> Result<(), VenusError> {
        let venus = &self.user.venus;
        let (node, opened) = self.kernel.open(venus, REWRITTEN, OpenFlags::WRITE).await?;
        venus.write(opened.handle, 0, self.content(round)).await?;
        venus.flush(opened.handle, 0).await?;
        self.kernel.release(venus, opened.handle);
        venus.forget(node, 1);
        Ok(())
    }

    async fn read(&self, name: &str) -> Result<Vec<u8>, VenusError> {
        let venus = &self.user.venus;
        let look_up = venus.lookup(NodeId::ROOT, name.as_bytes());
        let found = self.kernel.request(NodeId::ROOT, NameAccess::Reads, look_up).await?;
        venus.forget(found.node, 1);
        let (node, opened) = self.kernel.open(venus, name, OpenFlags::READ).await?;
        let data = venus.read(opened.handle, 0, 2 * LENGTH).await;
        self.kernel.release(venus, opened.handle);
        venus.forget(node, 1);
        Ok(data?.to_vec())
    }

    fn content(&self, round: usize) -> Bytes {
        vec![b'a' + (self.number * ROUNDS + round) as u8 % 26; LENGTH].into()
    }
}
