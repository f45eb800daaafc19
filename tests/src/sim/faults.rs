//! Actors that cause faults while users work: power failures, partitions, clock jumps, suspended machines.
//!
//! Each is an actor on a machine of its own, which draws its next action from the seed until no user works any longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afs_rpc::{EnvExt, EnvRef};
use afs_sim::{SimRng, SleepClock, World};
use afs_testkit::Server;

use super::cell::Cell;
use super::user::User;

/// Number of users still at work.
pub type AtWork = Arc<AtomicUsize>;

fn users_at_work(working: &AtWork) -> bool {
    working.load(Ordering::Relaxed) > 0
}

/// The machine that the actors run on.
fn actor_machine(cell: &Cell) -> (World, EnvRef) {
    let world = cell.sim.world();
    let node = world.node("fate", std::net::IpAddr::from([10, 0, 0, 250]));
    let env = world.env(node);
    (world, env)
}

/// Partitions clients from the server for up to two minutes, and makes clocks jump by up to a day.
///
/// A partitioned client continues to trust its promises, and is notified of what it missed when it can be reached
/// again.
pub fn spawn_cuts(cell: &Cell, users: Vec<User>, working: AtWork, mut rng: SimRng) {
    let (world, env) = actor_machine(cell);
    let (server, clock) = (cell.server, env.clone());
    env.spawn(Box::pin(async move {
        while users_at_work(&working) {
            clock.sleep(rng.duration(Duration::ZERO, Duration::from_secs(10))).await;
            if !users_at_work(&working) {
                return;
            }
            let user = &users[rng.index(users.len())];
            let client = user.node;
            user.history.doubt(user.number, CUT_MAX + HEARS_WITHIN);
            let direction = rng.below(3);
            if direction != 0 {
                world.cut(client, server);
            }
            if direction != 1 {
                world.cut(server, client);
            }
            if rng.chance(300_000) {
                let who = if rng.chance(500_000) { server } else { client };
                let by = rng.duration(Duration::ZERO, Duration::from_secs(86_400));
                world.jump_wall(who, by, rng.chance(500_000));
            }
            clock.sleep(rng.duration(Duration::ZERO, CUT_MAX)).await;
            world.mend(client, server);
            world.mend(server, client);
        }
    }));
}

/// Causes a power failure of the server at one of its writes, and starts it again. Returns 1 until the last failure is over, which may be
/// after the users' work.
pub fn spawn_power_cuts(cell: &Cell, working: AtWork, mut rng: SimRng) -> Arc<AtomicUsize> {
    let (world, env) = actor_machine(cell);
    let machine = cell.machine.server.clone();
    let clock = env.clone();
    let to_come = Arc::new(AtomicUsize::new(1));
    let ended = to_come.clone();
    env.spawn(Box::pin(async move {
        while users_at_work(&working) {
            machine.disk.crash_after(rng.below(150));
            let died =
                afs_rpc::future::select(world.died(machine.node), clock.sleep(Duration::from_secs(20))).await;
            if matches!(died, afs_rpc::future::Either::Right(())) {
                world.crash(machine.node);
            }
            clock.sleep(rng.duration(Duration::from_millis(50), Duration::from_secs(4))).await;
            start_again(&machine).await;
        }
        ended.store(0, Ordering::Relaxed);
    }));
    to_come
}

/// Ends the server's processes at random times, and starts them again at once.
pub fn spawn_restarts(cell: &Cell, working: AtWork, mut rng: SimRng) {
    let (world, env) = actor_machine(cell);
    let machine = cell.machine.server.clone();
    let clock = env.clone();
    env.spawn(Box::pin(async move {
        while users_at_work(&working) {
            clock.sleep(rng.duration(Duration::from_millis(500), RESTARTS_MAX)).await;
            world.crash(machine.node);
            clock.sleep(rng.duration(Duration::from_millis(50), Duration::from_millis(500))).await;
            start_again(&machine).await;
        }
    }));
}

/// Suspends client machines for up to five hours. Before and after, the machine's user reads all files.
///
/// A short sleep is not noticed: the machine may have missed a break, and its clock still counts the promise as valid.
/// Its reads do not count until it had time to hear from the server. After a longer sleep its reads count at once; on a
/// machine whose clock stood still meanwhile, as soon as it has compared its clocks.
pub fn spawn_sleeps(cell: &Cell, users: Vec<User>, files: Vec<String>, working: AtWork, mut rng: SimRng) {
    let (world, env) = actor_machine(cell);
    let clock = env.clone();
    env.spawn(Box::pin(async move {
        while users_at_work(&working) {
            clock.sleep(rng.duration(Duration::ZERO, Duration::from_secs(60))).await;
            let user = users[rng.index(users.len())].clone();
            let kind = if rng.chance(700_000) { SleepClock::GoesOn } else { SleepClock::StandsStill };
            let longest = [1, 30, 1200, 18_000][rng.index(4)];
            let asleep = rng.duration(Duration::from_millis(10), Duration::from_secs(longest));
            let unsure = match kind {
                _ if asleep <= UNNOTICED_MAX => HEARS_WITHIN,
                SleepClock::GoesOn => Duration::ZERO,
                SleepClock::StandsStill => COMPARES_WITHIN,
            };
            look(&user, &files, &working).await;
            user.history.doubt(user.number, asleep + unsure);
            world.suspend(user.node, kind);
            clock.sleep(asleep).await;
            world.resume(user.node);
            clock.sleep(if asleep <= UNNOTICED_MAX { Duration::ZERO } else { unsure }).await;
            look(&user, &files, &working).await;
        }
    }));
}

/// A user reads all files.
async fn look(user: &User, files: &[String], working: &AtWork) {
    if !users_at_work(working) {
        return;
    }
    let (at_work, files) = (user.clone(), files.to_vec());
    let looking = user.env.spawn_with_result(async move {
        for file in &files {
            // The outcome is in the history.
            let _ = at_work.read(file).await;
        }
    });
    let _ = looking.await;
}

/// Starts the server of a machine whose processes have ended.
///
/// # Panics
/// If it does not start.
pub async fn start_again(machine: &Server) {
    let world = &machine.world;
    world.restart(machine.node);
    let starting = machine.clone();
    let started = world
        .env(machine.node)
        .spawn_with_result(async move { starting.start().await.map_err(|error| error.to_string()) });
    match started.await {
        Ok(Ok(())) => {}
        outcome => panic!("the server does not start again: {outcome:?}\n{}", world.log_tail(60)),
    }
}

/// Longest time from one start of the server to its next end.
pub const RESTARTS_MAX: Duration = Duration::from_secs(4);
/// Longest partition of a client.
const CUT_MAX: Duration = Duration::from_secs(120);
/// Time within which a client is notified of what it has missed.
pub(super) const HEARS_WITHIN: Duration = Duration::from_secs(75);
/// A longer sleep is noticed: the permitted difference of the clocks, and the time between two comparisons.
pub(super) const UNNOTICED_MAX: Duration = Duration::from_secs(30 + 15 + 1);
/// Time between two comparisons of the clocks.
pub(super) const COMPARES_WITHIN: Duration = Duration::from_secs(16);
