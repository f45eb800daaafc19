//! Simulated machines that change the same files at the same time, with caches too small for them, while the network
//! loses, delays and is partitioned: every read returns contents that were closed as a whole before or during it, no
//! user sees anything older than before, and at the end all machines agree with the server. The same for machines of which some
//! take leases, while the power fails.
//!
//! `ANDREW_SEEDS=N` runs that many worlds, `ANDREW_SEED=S` the one of that seed.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afs_sim::SimRng;
use andrew_tests::live::scratch::Scratch;
use andrew_tests::sim::cell::Cell;
use andrew_tests::sim::fault_class::FaultClass;
use andrew_tests::sim::faults;
use andrew_tests::sim::history::History;
use andrew_tests::sim::outages::Outages;
use andrew_tests::sim::saver::Habit;
use andrew_tests::sim::settings::CellSettings;
use andrew_tests::sim::user::User;

/// More than twice the longest content: a writer that fills more than half of the cache waits while its file is stored
/// in parts.
const CACHE: u64 = 420 << 10;
const FILES: usize = 40;
const STEPS: u32 = 50;
const THINK: Duration = Duration::from_millis(800);
const RUN: Duration = Duration::from_secs(20_000);

#[test]
fn machines_at_work_on_the_same_files_lose_and_mix_nothing() {
    match number("ANDREW_SEED") {
        Some(seed) => run(seed),
        None => (0..number("ANDREW_SEEDS").unwrap_or(24)).for_each(run),
    }
}

/// Files are saved by renaming new ones over them, in runs which a lease is taken for; others are made by a second name in subdirectories, which are
/// removed with all that is in them; readers recall the lease. One of four machines takes no lease, another one reads only. Half of the worlds have no faults, or a network that loses packets; in the others machines and the server crash, networks
/// are cut, machines sleep, and clocks jump.
#[test]
fn machines_that_decide_under_leases_lose_and_mix_nothing() {
    match number("ANDREW_SEED") {
        Some(seed) => run_under_leases(seed),
        None => {
            let first = number("ANDREW_FIRST_SEED").unwrap_or(0);
            (first..first + number("ANDREW_SEEDS").unwrap_or(4)).for_each(run_under_leases);
        }
    }
}

fn run_under_leases(seed: u64) {
    let scratch = Scratch::new(&format!("leases{seed}"));
    let mut settings = CellSettings::default();
    settings.venus.leases = true;
    settings.without_leases = vec![0, READER];
    settings.disk_caches = Some(scratch.path().to_owned());
    let cell = Cell::with(seed, settings);
    let history = History::new(cell.sim.world());
    let outcome = save(&cell, &history, seed).and_then(|()| history.check());
    if let Err(what) = outcome {
        let log = format!("{}\n{}", cell.sim.notes_tail(80), cell.sim.log_tail(60));
        panic!("seed {seed}: {what}\nthe last events:\n{log}");
    }
}

fn save(cell: &Cell, history: &History, seed: u64) -> Result<(), String> {
    let mut rng = SimRng::new(seed);
    cell.start();
    let users: Vec<User> = (0..=READER).map(|number| cell.user(number, history)).collect::<Result<_, _>>()?;
    let [dirs, files] = [("dir", DIRS), ("file", 3)]
        .map(|(kind, count)| (0..count).map(|n| format!("{kind}{n}")).collect::<Vec<_>>());
    let (first, at, names) = (users[0].clone(), dirs.clone(), files.clone());
    let prepared = cell.sim.block_on(first.node, RUN, async move { first.prepare_in(&at, &names).await });
    prepared.map_err(|hang| hang.to_string())?.map_err(|error| error.to_string())?;
    history.never_empty();

    let lossy = if seed % 4 == 1 { FaultClass::LossyNetwork } else { FaultClass::None };
    cell.sim.set_link(lossy.link(&mut rng));
    let faults = if seed % 4 < 2 { 0 } else { FAULTS };
    let paths: Vec<_> =
        dirs.iter().flat_map(|dir| files.iter().map(move |file| format!("{dir}/{file}"))).collect();
    let runs = if faults == 0 { RUNS } else { RUNS_WITH_FAULTS };
    let habit = Habit { dirs, files, runs, ..Habit::default() };
    let users = Outages::new(cell, history, users, habit, rng).run(faults)?;
    if let Some(failure) = history.first_failure().filter(|_| faults == 0) {
        return Err(format!("an operation failed though the server was up: {failure}"));
    }
    if faults == 0 && users.iter().all(|user| user.venus.counters().leases_taken == 0) {
        return Err("no lease was taken".into());
    }
    agree(cell, history, users, &paths)
}

/// Directories in which machines work: so many that one is often alone in one for some time, as a lease requires.
const DIRS: usize = 5;
/// Runs of saves of each machine.
const RUNS: u32 = 12;
/// So many that machines are at work until the last fault comes, in most worlds.
const RUNS_WITH_FAULTS: u32 = 40;
/// Faults of a world.
const FAULTS: usize = 6;
/// The number of the last machine.
const READER: usize = 3;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

fn run(seed: u64) {
    let faults = [FaultClass::None, FaultClass::LossyNetwork, FaultClass::Partitions]
        [usize::try_from(seed % 3).unwrap()];
    let cell = Cell::with(seed, CellSettings { cache: CACHE, ..CellSettings::default() });
    let history = History::new(cell.sim.world());
    let outcome = live(&cell, &history, seed, faults).and_then(|()| history.check());
    if let Err(what) = outcome {
        let log = format!("{}\n{}", cell.sim.notes_tail(80), cell.sim.log_tail(60));
        panic!("seed {seed} ({faults:?}): {what}\nthe last events:\n{log}");
    }
}

fn live(cell: &Cell, history: &History, seed: u64, faults: FaultClass) -> Result<(), String> {
    let mut rng = SimRng::new(seed);
    cell.start();
    let users: Vec<User> = (0..3).map(|number| cell.user(number, history)).collect::<Result<_, _>>()?;
    let files: Vec<String> = (0..FILES).map(|n| format!("file{n}")).collect();
    let (first, names) = (users[0].clone(), files.clone());
    let prepared = cell.sim.block_on(first.node, RUN, async move { first.prepare(&names).await });
    prepared.map_err(|hang| hang.to_string())?.map_err(|error| error.to_string())?;

    cell.sim.set_link(faults.link(&mut rng));
    let working = Arc::new(AtomicUsize::new(users.len()));
    for user in &users {
        let work = user.clone().edit(files.clone(), STEPS, THINK, rng.fork());
        let working = working.clone();
        user.env.spawn(Box::pin(async move {
            work.await;
            working.fetch_sub(1, Ordering::Relaxed);
        }));
    }
    if faults == FaultClass::Partitions {
        faults::spawn_cuts(cell, users.clone(), working.clone(), rng.fork());
    }
    let done = || working.load(Ordering::Relaxed) == 0;
    cell.sim.run_until(RUN, done).map_err(|hang| hang.to_string())?;
    if let Some(failure) = history.first_failure().filter(|_| faults != FaultClass::Partitions) {
        return Err(format!("an operation failed though the server was up: {failure}"));
    }
    agree(cell, history, users, &files)
}

/// Once no notification is outstanding, all machines see the contents that a machine with an empty cache sees.
fn agree(cell: &Cell, history: &History, users: Vec<User>, files: &[String]) -> Result<(), String> {
    for user in &users {
        cell.sim.mend(user.node, cell.server);
        cell.sim.mend(cell.server, user.node);
    }
    cell.sim.run_for(QUIET);
    let newcomer = cell.user(9, history)?;
    let (mut seen, objects) = (Vec::new(), history.last_objects(usize::MAX));
    for user in [newcomer].into_iter().chain(users) {
        let (number, node, files, objects) = (user.number, user.node, files.to_vec(), objects.clone());
        let looked = cell.sim.block_on(node, RUN, async move {
            let mut contents = Vec::new();
            for file in &files {
                user.read(file).await?;
                contents.push(Some(user.content(file).await?));
            }
            for object in &objects {
                contents.push(user.read_object(object).await?);
            }
            Ok::<_, afs_venus::VenusError>(contents)
        });
        let looked = looked.map_err(|hang| hang.to_string())?;
        seen.push(looked.map_err(|error| format!("user {number} in the end: {error}"))?);
        if seen[0] != seen[seen.len() - 1] {
            return Err(format!(
                "user {number} sees {:?} where the server has {:?}",
                seen[seen.len() - 1],
                seen[0]
            ));
        }
    }
    Ok(())
}

/// Time after which a client that was cut off has received every notification, its stores have been retried, and no
/// doubt is left.
const QUIET: Duration = Duration::from_secs(300);
