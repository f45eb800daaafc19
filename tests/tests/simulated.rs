//! Simulated cells from seeds: every acknowledged change is visible to all users afterwards, with any faults of the
//! network and the power; in half of them the bytes of files travel by the data path.
//!
//! `ANDREW_SEEDS=N` runs that many worlds, `ANDREW_SEED=S` the one of that seed.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_server::VolumeState;
use afs_sim::{SimRng, SleepClock};
use afs_venus::{OpenFlags, VenusError};
use andrew_tests::sim::cell::Cell;
use andrew_tests::sim::fault_class::FaultClass;
use andrew_tests::sim::faults;
use andrew_tests::sim::history::History;
use andrew_tests::sim::settings::CellSettings;
use andrew_tests::sim::user::{Habits, User};
use bytes::Bytes;

/// No operation of Venus waits longer than a minute, and a run has about thirty-one in succession.
const RUN: Duration = Duration::from_secs(3600);
const STEPS: u32 = 30;
const THINK: Duration = Duration::from_millis(400);

#[test]
fn acknowledged_changes_are_seen_by_others() {
    match number("ANDREW_SEED") {
        Some(seed) => run(seed),
        None => (0..number("ANDREW_SEEDS").unwrap_or(200)).for_each(run),
    }
}

/// The same seed must give the same run, or a failing seed could not be reproduced.
#[test]
fn a_cell_from_one_seed_runs_the_same_twice() {
    for seed in 0..6 {
        assert_eq!(world(seed).0, world(seed).0, "seed {seed}");
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

fn run(seed: u64) {
    let (_, outcome, log) = world(seed);
    if let Err(what) = outcome {
        panic!("seed {seed} ({:?}): {what}\nthe last events:\n{log}", FaultClass::of(seed));
    }
}

/// Runs one world: its fingerprint, whether its history can be explained, and its last events.
fn world(seed: u64) -> (u64, Result<(), String>, String) {
    // Of each class of faults, half of the worlds.
    let data_path = seed / 4 % 2 == 1;
    let cell = Cell::with(seed, CellSettings { data_path, ..CellSettings::default() });
    let history = History::new(cell.sim.world());
    let outcome = live(&cell, &history, seed).and_then(|()| history.check());
    (cell.sim.fingerprint(), outcome, format!("{}\n{}", cell.sim.notes_tail(80), cell.sim.log_tail(60)))
}

fn live(cell: &Cell, history: &History, seed: u64) -> Result<(), String> {
    let mut rng = SimRng::new(seed);
    let faults = FaultClass::of(seed);
    cell.start();
    let users: Vec<User> = (0..rng.between(2, 3))
        .map(|n| cell.user(usize::try_from(n).unwrap(), history))
        .collect::<Result<_, _>>()?;
    let files: Vec<String> = (0..3).map(|n| format!("file{n}")).collect();
    let (first, names) = (users[0].clone(), files.clone());
    let prepared = cell.sim.block_on(first.node, RUN, async move { first.prepare(&names).await });
    prepared.map_err(|hang| hang.to_string())?.map_err(|error| error.to_string())?;

    cell.sim.set_link(faults.link(&mut rng));
    cell.sim.set_streams(faults.streams(&mut rng.fork()));
    history.look_away(!faults.is_seen_by_all());
    let habits = Habits {
        steps: STEPS,
        think: THINK,
        calls_first: faults == FaultClass::PowerFailures,
        reads_only: false,
    };
    let working = Arc::new(AtomicUsize::new(users.len()));
    for user in &users {
        let work = user.clone().work(files.clone(), habits, rng.fork());
        let working = working.clone();
        user.env.spawn(Box::pin(async move {
            work.await;
            working.fetch_sub(1, Ordering::Relaxed);
        }));
    }
    let at_work = working.clone();
    let mut failures = Arc::default();
    match faults {
        FaultClass::PowerFailures => failures = faults::spawn_power_cuts(cell, at_work, rng.fork()),
        FaultClass::Partitions => {
            faults::spawn_cuts(cell, users.clone(), at_work, rng.fork());
        }
        FaultClass::None | FaultClass::LossyNetwork => {}
    }
    let is_over = |counter: &AtomicUsize| counter.load(Ordering::Relaxed) == 0;
    let done = || is_over(&working) && is_over(&failures) && cell.sim.is_up(cell.server);
    cell.sim.run_until(RUN, done).map_err(|hang| hang.to_string())?;
    if faults.is_without_failures()
        && let Some(failure) = history.first_failure()
    {
        return Err(format!("an operation failed though the server was up: {failure}"));
    }
    for user in &users {
        cell.sim.mend(user.node, cell.server);
        cell.sim.mend(cell.server, user.node);
    }
    history.look_away(false);
    // A new client, with nothing cached, and all others once the server has heard of them.
    let newcomer = cell.user(9, history)?;
    for user in users.into_iter().chain([newcomer]) {
        let (number, node) = (user.number, user.node);
        let looked = cell.sim.block_on(node, RUN, look_at_everything(user, files.clone()));
        looked
            .map_err(|hang| hang.to_string())?
            .map_err(|error| format!("user {number} in the end: {error}"))?;
    }
    Ok(())
}

async fn look_at_everything(user: User, files: Vec<String>) -> Result<(), VenusError> {
    // A client that was cut off may first have to detect that the server is up again.
    let mut tries = 0;
    while let Err(error) = user.call_server(STEPS + tries).await {
        tries += 1;
        if tries > 20 {
            return Err(error);
        }
        user.env.sleep(Duration::from_secs(10)).await;
    }
    for file in &files {
        user.read(file).await?;
    }
    user.list().await
}

/// The cell of a test that drives its events directly.
struct Fixture {
    cell: Cell,
    users: Vec<User>,
}

impl Fixture {
    fn new(seed: u64) -> Self {
        Fixture::of(Cell::new(seed))
    }

    fn of(cell: Cell) -> Self {
        cell.start();
        let history = History::new(cell.sim.world());
        let users: Vec<User> = (0..2).map(|number| cell.user(number, &history).unwrap()).collect();
        let fixture = Fixture { cell, users };
        fixture.on(0, |user| async move { user.prepare(&["file".to_owned()]).await });
        fixture
    }

    /// Runs an operation of a user, and waits for it.
    fn on<T: Send + 'static, F>(&self, user: usize, work: impl FnOnce(User) -> F) -> T
    where
        F: Future<Output = Result<T, VenusError>> + Send + 'static,
    {
        self.attempt(user, work).unwrap()
    }

    fn attempt<T: Send + 'static, F>(
        &self,
        user: usize,
        work: impl FnOnce(User) -> F,
    ) -> Result<T, VenusError>
    where
        F: Future<Output = Result<T, VenusError>> + Send + 'static,
    {
        let user = self.users[user].clone();
        self.cell.sim.block_on(user.node, RUN, work(user)).unwrap()
    }

    fn store(&self, user: usize) {
        self.on(user, |user| async move { user.store("file").await });
    }

    fn content(&self, user: usize) -> u64 {
        self.on(user, |user| async move { user.content("file").await })
    }
}

/// The bytes of most files go by it, in both directions.
#[test]
fn in_a_cell_with_a_data_path_its_clients_use_it() {
    let fixture = Fixture::of(Cell::with(2, CellSettings { data_path: true, ..CellSettings::default() }));
    for _ in 0..20 {
        fixture.store(0);
        fixture.content(1);
    }
    let counters = |user: usize| fixture.users[user].venus.counters();
    let (stored, fetched) = (counters(0), counters(1));
    assert!(stored.path_bytes_stored > stored.bytes_stored / 2, "{stored:?}");
    assert!(fetched.path_bytes_fetched > fetched.bytes_fetched / 2, "{fetched:?}");
}

#[test]
fn old_data_is_read_for_at_most_75_seconds_after_a_restart() {
    let mut saw_old = 0;
    for seed in 0..12 {
        let fixture = Fixture::new(seed);
        let sim = &fixture.cell.sim;
        fixture.store(0);
        assert_eq!(fixture.content(1), 1);
        sim.run_for(SimRng::new(seed).duration(Duration::ZERO, Duration::from_secs(60)));
        sim.restart(fixture.cell.server);
        fixture.cell.start();
        let restarted = sim.now();
        fixture.store(0);
        while fixture.content(1) != 2 {
            saw_old += 1;
            assert!(sim.now() - restarted < Duration::from_secs(75), "seed {seed}");
            sim.run_for(Duration::from_secs(1));
        }
    }
    assert!(saw_old > 0, "nothing old was ever there to be read");
}

#[test]
fn a_busy_volume_is_waited_for_up_to_a_minute() {
    let fixture = Fixture::new(1);
    let (volume, states) = (fixture.cell.volume(), fixture.cell.machine.server.states.clone());
    states.set(volume, Some(VolumeState::Busy));
    let (env, free) = (fixture.users[0].env.clone(), states.clone());
    fixture.users[0].env.spawn(Box::pin(async move {
        env.sleep(Duration::from_secs(50)).await;
        free.set(volume, None);
    }));
    fixture.store(0);
    assert_eq!(fixture.content(1), 1);
    states.set(volume, Some(VolumeState::Busy));
    let begin = fixture.cell.sim.now();
    let refused = fixture.attempt(0, |user| async move { user.call_server(1).await });
    let took = fixture.cell.sim.now() - begin;
    assert!(refused.is_err());
    assert!((Duration::from_secs(55)..Duration::from_secs(65)).contains(&took), "{took:?}");
}

/// The promise on a file ends while a machine sleeps, so that the server does not notify it of a change. `StandsStill`
/// is a clock that does not count suspend: with it the machine continues to read the old data, which shows that this
/// test can fail.
#[test]
fn a_machine_that_slept_past_its_promise_reads_nothing_old() {
    for (clock, expected) in [(SleepClock::GoesOn, 2), (SleepClock::StandsStill, 1)] {
        let fixture = Fixture::new(2);
        let sim = &fixture.cell.sim;
        fixture.store(0);
        fixture.on(1, |user| async move { user.list().await });
        assert_eq!(fixture.content(1), 1);
        // The server exchanges packets with the machine until shortly before its promise ends.
        sim.run_for(Duration::from_secs(600));
        sim.suspend(fixture.users[1].node, clock);
        sim.run_for(Duration::from_secs(4 * 3600));
        fixture.store(0);
        sim.resume(fixture.users[1].node);
        assert_eq!(fixture.content(1), expected, "{clock:?}");
    }
}

/// A cell with nothing in memory: every file was created and some were stored, then the server was restarted twice. The
/// first start moves the log into the index, the second finds nothing to do. The index is larger than its cache.
fn cold(files: &[String], stored: &[String]) -> Fixture {
    let fixture =
        Fixture::of(Cell::with(3, CellSettings { index_cache: 16 << 10, ..CellSettings::default() }));
    let names = files.to_vec();
    fixture.on(0, |user| async move { user.prepare(&names).await });
    for file in stored {
        let file = file.clone();
        fixture.on(0, |user| async move { user.store(&file).await });
    }
    for _ in 0..2 {
        fixture.cell.sim.restart(fixture.cell.server);
        fixture.cell.start();
    }
    fixture
}

fn numbered(count: u32) -> Vec<String> {
    (0..count).map(|n| format!("file{n}")).collect()
}

/// Calls begin on the thread that receives datagrams: a call that reads the disk there delays all other clients.
#[test]
fn listing_and_reading_read_no_disk_on_the_receiving_thread() {
    let files = numbered(200);
    let fixture = cold(&files, &["file1".to_owned(), "file100".to_owned()]);
    let history = History::new(fixture.cell.sim.world());
    let newcomer = fixture.cell.user(2, &history).unwrap();
    let disk = fixture.cell.machine.server.disk.clone();
    let before = disk.stats().reads_while_receiving;
    let node = newcomer.node;
    let looked = fixture.cell.sim.block_on(node, RUN, async move {
        newcomer.list().await?;
        for file in &files {
            newcomer.read(file).await?;
        }
        Ok::<_, VenusError>(())
    });
    looked.unwrap().unwrap();
    assert_eq!(disk.stats().reads_while_receiving - before, 0);
}

#[test]
fn storing_a_part_of_a_file_reads_no_disk_on_the_receiving_thread() {
    let files = numbered(40);
    let fixture = cold(&files, &files);
    let newcomer = fixture.cell.user(2, &History::new(fixture.cell.sim.world())).unwrap();
    let disk = fixture.cell.machine.server.disk.clone();
    let before = disk.stats().reads_while_receiving;
    let node = newcomer.node;
    let stored = fixture.cell.sim.block_on(node, RUN, async move {
        for file in &files {
            let entry = newcomer.venus.walk(file.as_bytes(), true).await?;
            let opened = newcomer.venus.open(entry.node, OpenFlags::WRITE).await?;
            newcomer.venus.write(opened.handle, 10, Bytes::from_static(b"part")).await?;
            newcomer.venus.flush(opened.handle, 0).await?;
            newcomer.venus.release(opened.handle).await?;
        }
        Ok::<_, VenusError>(())
    });
    stored.unwrap().unwrap();
    assert_eq!(disk.stats().reads_while_receiving - before, 0);
}
