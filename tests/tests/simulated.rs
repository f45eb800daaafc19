//! Whole cells from seeds: what was acknowledged is seen by everybody afterwards, whatever the network and the power do.
//!
//! `ANDREW_SEEDS=N` runs so many worlds, `ANDREW_SEED=S` the one of that seed.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_sim::{NodeId, SimRng, World};
use afs_venus::VenusError;
use andrew_tests::sim::cell::Cell;
use andrew_tests::sim::history::History;
use andrew_tests::sim::user::User;
use andrew_tests::sim::weather::Weather;

/// No operation of Venus waits longer than a minute, and a run has about thirty one behind the other.
const RUN: Duration = Duration::from_secs(3600);
const STEPS: u32 = 30;

#[test]
fn what_was_acknowledged_is_what_others_see() {
    match number("ANDREW_SEED") {
        Some(seed) => run(seed),
        None => (0..number("ANDREW_SEEDS").unwrap_or(200)).for_each(run),
    }
}

/// The same seed must give the same run, or a failing seed is no bug report.
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
        panic!("seed {seed} ({:?}): {what}\nthe last events:\n{log}", Weather::of(seed));
    }
}

/// One world: its fingerprint, whether its history can be explained, and its last events.
fn world(seed: u64) -> (u64, Result<(), String>, String) {
    let cell = Cell::new(seed);
    let history = History::new(cell.sim.world());
    let outcome = live(&cell, &history, seed).and_then(|()| history.check());
    (cell.sim.fingerprint(), outcome, format!("{}\n{}", cell.sim.notes_tail(80), cell.sim.log_tail(60)))
}

fn live(cell: &Cell, history: &History, seed: u64) -> Result<(), String> {
    let mut rng = SimRng::new(seed);
    let weather = Weather::of(seed);
    cell.start();
    let users: Vec<User> =
        (0..rng.between(2, 3)).map(|n| cell.user(usize::try_from(n).unwrap(), history)).collect();
    let files: Vec<String> = (0..3).map(|n| format!("file{n}")).collect();
    let (first, names) = (users[0].clone(), files.clone());
    let prepared = cell.sim.block_on(first.node, RUN, async move { first.prepare(&names).await });
    prepared.map_err(|hang| hang.to_string())?.map_err(|error| error.to_string())?;

    cell.sim.set_link(weather.link(&mut rng));
    history.look_away(!weather.is_seen_by_all());
    let working = Arc::new(AtomicUsize::new(users.len()));
    for user in &users {
        let work = user.clone().work(files.clone(), STEPS, weather == Weather::Crashes, rng.fork());
        let working = working.clone();
        user.env.spawn(Box::pin(async move {
            work.await;
            working.fetch_sub(1, Ordering::Relaxed);
        }));
    }
    let at_work = working.clone();
    match weather {
        Weather::Crashes => spawn_power_cuts(cell, at_work, rng.fork()),
        Weather::Cuts => spawn_cuts(cell, users.iter().map(|user| user.node).collect(), at_work, rng.fork()),
        Weather::Fair | Weather::Foul => {}
    }
    let done = || working.load(Ordering::Relaxed) == 0 && cell.sim.is_up(cell.server);
    cell.sim.run_until(RUN, done).map_err(|hang| hang.to_string())?;
    if weather.is_without_failures()
        && let Some(failure) = history.first_failure()
    {
        return Err(format!("an operation failed though the server was up: {failure}"));
    }
    for user in &users {
        cell.sim.mend(user.node, cell.server);
        cell.sim.mend(cell.server, user.node);
    }
    history.look_away(false);
    // A newcomer, with nothing cached, and everybody else once the server has heard of them.
    let newcomer = cell.user(9, history);
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
    // A client that was cut off may have to find out first that the server is there again.
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

/// On a machine of its own: cuts clients off for up to two minutes, and has clocks jump by up to a day.
fn spawn_cuts(cell: &Cell, clients: Vec<NodeId>, working: Arc<AtomicUsize>, mut rng: SimRng) {
    let world = cell.sim.world();
    let fate = world.node("fate", std::net::IpAddr::from([10, 0, 0, 250]));
    let clock = world.env(fate);
    let (server, env) = (cell.server, clock.clone());
    env.spawn(Box::pin(async move {
        while working.load(Ordering::Relaxed) > 0 {
            clock.sleep(rng.duration(Duration::ZERO, Duration::from_secs(10))).await;
            if working.load(Ordering::Relaxed) == 0 {
                return;
            }
            let client = clients[rng.index(clients.len())];
            let direction = rng.below(3);
            if direction != 0 {
                world.cut(client, server);
            }
            if direction != 1 {
                world.cut(server, client);
            }
            if rng.chance(300_000) {
                let who = if rng.chance(500_000) { server } else { client };
                world.jump_wall(
                    who,
                    rng.duration(Duration::ZERO, Duration::from_secs(86_400)),
                    rng.chance(500_000),
                );
            }
            clock.sleep(rng.duration(Duration::ZERO, Duration::from_secs(120))).await;
            world.mend(client, server);
            world.mend(server, client);
        }
    }));
}

/// On a machine of its own: takes the server's power away at one of its writes, and starts it again.
fn spawn_power_cuts(cell: &Cell, working: Arc<AtomicUsize>, mut rng: SimRng) {
    let world = cell.sim.world();
    let fate = world.node("fate", std::net::IpAddr::from([10, 0, 0, 250]));
    let env = world.env(fate);
    let (server, disk) = (cell.server, cell.disk.clone());
    let clock = env.clone();
    env.spawn(Box::pin(async move {
        while working.load(Ordering::Relaxed) > 0 {
            disk.crash_after(rng.below(150));
            let died =
                afs_rpc::future::select(world.died(server), clock.sleep(Duration::from_secs(20))).await;
            if matches!(died, afs_rpc::future::Either::Right(())) {
                world.crash(server);
            }
            clock.sleep(rng.duration(Duration::from_millis(50), Duration::from_secs(4))).await;
            start_again(&world, server, &disk).await;
        }
    }));
}

async fn start_again(world: &World, server: NodeId, disk: &afs_sim::disk::SimDisk) {
    world.restart(server);
    let start = Cell::start_server(world.clone(), server, disk.clone());
    let started =
        world.env(server).spawn_with_result(async move { start.await.map_err(|error| error.to_string()) });
    match started.await {
        Ok(Ok(())) => {}
        outcome => panic!("the server does not start again: {outcome:?}\n{}", world.log_tail(60)),
    }
}
