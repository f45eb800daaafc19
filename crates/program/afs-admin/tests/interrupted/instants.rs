//! One crash at each event of an operation.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afs_admin::{Admin, AdminResult, CreateOptions, ServerPartition};
use afs_wire::ids::{PartitionId, VolumeId};

use crate::interrupted::world::{DiskVolume, World, address};

pub const SECONDS: fn(u64) -> Duration = Duration::from_secs;

/// Checks a world after a run; gets the name of the run.
type Check = Box<dyn Fn(&World, &str)>;

/// A cell whose tool has begun an operation.
pub struct StartedOperation {
    pub world: World,
    /// Whether the tool has finished, with or without success.
    over: Arc<AtomicBool>,
    check: Check,
}

impl StartedOperation {
    /// Lets the tool begin `work`; `check` is called at the end.
    pub fn new<F>(world: World, work: impl FnOnce(Admin) -> F, check: impl Fn(&World, &str) + 'static) -> Self
    where
        F: Future<Output = AdminResult> + Send + 'static,
    {
        let over = Arc::new(AtomicBool::new(false));
        let (told, work) = (over.clone(), work(world.admin()));
        world.sim.env(world.tool).spawn(Box::pin(async move {
            let _ = work.await;
            told.store(true, Ordering::Relaxed);
        }));
        Self { world, over, check: Box::new(check) }
    }

    fn check(&self, what: &str) {
        (self.check)(&self.world, what);
    }
}

/// A site by the server's number.
pub fn place(server: u8) -> ServerPartition {
    ServerPartition::new(address(2 + server), PartitionId(0))
}

/// A volume on the first server.
pub fn create(world: &World, name: &str) -> VolumeId {
    let options = CreateOptions { name: name.into(), place: place(0), quota: 0, id: None };
    world.run(|admin| async move { admin.create(options).await })
}

/// The acknowledged numbers, after some more were written.
pub fn written(world: &World, what: &str) -> BTreeSet<u64> {
    world.sim.run_for(SECONDS(5));
    let before = world.acknowledged.lock().unwrap().len();
    world.sim.run_for(SECONDS(5));
    let acknowledged = world.acknowledged.lock().unwrap().clone();
    assert!(acknowledged.len() > before, "{what}: the client cannot write\n{}", world.sim.log_tail(40));
    acknowledged
}

pub fn assert_nothing_lost(held: &DiskVolume, acknowledged: &BTreeSet<u64>, what: &str) {
    let lost: Vec<_> = acknowledged.iter().filter(|n| !held.numbers.contains_key(n)).collect();
    assert!(lost.is_empty(), "{what}: lost {lost:?}");
}

/// Checks that a volume's content is one of its states: the client writes number after number.
pub fn assert_whole(held: &DiskVolume, what: &str) {
    let gap = held.numbers.keys().zip(0..).find(|(number, index)| *number != index);
    assert!(gap.is_none(), "{what}: {} is a mixture: {gap:?}", held.name);
    assert!(held.in_service && !held.destroy_me, "{what}: {} is off line", held.name);
}

/// Number of events until the tool has finished.
fn events_of(scene: fn(u64) -> StartedOperation, seed: u64) -> u64 {
    let scene = scene(seed);
    let mut events = 0u64;
    let done = scene.world.sim.run_until(SECONDS(60), || {
        events += 1;
        scene.over.load(Ordering::Relaxed)
    });
    done.expect("an operation without trouble ends");
    scene.world.calm();
    scene.world.wait_until_quiet(SECONDS(60));
    scene.check("nothing died");
    events
}

/// One run, with a crash at one event.
pub fn die_at(scene: fn(u64) -> StartedOperation, seed: u64, event: u64, victim: usize) {
    let scene = scene(seed);
    let world = &scene.world;
    let node = world.victims()[victim];
    let mut events = 0u64;
    let _ = world.sim.run_until(SECONDS(60), || {
        events += 1;
        events >= event
    });
    let what = format!("seed {seed}, {} dies at event {event}", world.sim.name(node));
    world.sim.crash(node);
    world.calm();
    world.sim.run_for(SECONDS(4));
    if node != world.tool {
        world.restart(node);
    }
    world.wait_until_quiet(SECONDS(1200));
    scene.check(&what);
}

/// `ANDREW_MOVE_STRIDE` is the number of events from one crash to the next (default 7; 1 is every one),
/// `ANDREW_MOVE_SEED` the run.
pub fn every_instant(scene: fn(u64) -> StartedOperation, victim: usize) {
    let setting = |name, default| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let (seed, stride) = (setting("ANDREW_MOVE_SEED", 1), setting("ANDREW_MOVE_STRIDE", 7u64).max(1));
    let events = events_of(scene, seed);
    let mut event = 1 + victim as u64;
    while event <= events {
        die_at(scene, seed, event, victim);
        event += stride;
    }
}
