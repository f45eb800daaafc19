//! Faults that come one after the other, some of them during another one, while machines work: crashes of machines and of the server, partitions,
//! machines that sleep, clocks that jump. After some of them a new machine looks at everything.
//!
//! For each fault the history records what may be lost by it, and which machines may see something old.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afs_sim::{Hang, NodeId, SimRng, SleepClock};
use afs_venus::VenusError;

use super::cell::{BOOT, Cell};
use super::faults::{COMPARES_WITHIN, HEARS_WITHIN, UNNOTICED_MAX};
use super::history::History;
use super::saver::Habit;
use super::user::User;

type Outcome<T = ()> = Result<T, String>;

/// Machines at work, and the faults that come over them.
pub struct Outages<'a> {
    cell: &'a Cell,
    history: &'a History,
    machines: Vec<Desk>,
    habit: Habit,
    working: Arc<AtomicUsize>,
    newcomers: usize,
    rng: SimRng,
}

/// A machine with its user, who has another number in the history after each crash.
struct Desk {
    number: usize,
    node: NodeId,
    lives: usize,
    boots: usize,
    reads_only: bool,
    /// `None`: it has crashed.
    user: Option<User>,
}

impl<'a> Outages<'a> {
    /// The users of machines 0, 1, ... begin to work; the last one reads only.
    #[must_use]
    pub fn new(cell: &'a Cell, history: &'a History, users: Vec<User>, habit: Habit, rng: SimRng) -> Self {
        let last = users.len() - 1;
        let desk = |(number, user): (usize, User)| Desk {
            number,
            node: user.node,
            lives: 0,
            boots: 0,
            reads_only: number == last,
            user: Some(user),
        };
        let machines: Vec<Desk> = users.into_iter().enumerate().map(desk).collect();
        let working = Arc::default();
        let mut outages = Self { cell, history, machines, habit, working, newcomers: 0, rng };
        (0..=last).for_each(|which| outages.begin_work(which));
        outages
    }

    fn begin_work(&mut self, which: usize) {
        let desk = &self.machines[which];
        let Some(user) = desk.user.clone() else { return };
        if self.cell.machine.settings.takes_leases(desk.number) {
            self.history.durability(|model| model.decides(user.number));
        }
        let habit = Habit { reads_only: desk.reads_only, ..self.habit.clone() };
        let at_work = AtWork::new(&self.working);
        let (env, work) = (user.env.clone(), user.save(habit, self.rng.fork()));
        env.spawn(Box::pin(async move {
            let _at_work = at_work;
            work.await;
        }));
    }

    /// So many faults come. The work ends when the last one begins, so that nothing hides what it takes away; without faults it is
    /// completed. Returns the users of the machines.
    ///
    /// # Errors
    /// A machine cannot be started again, or the work does not end.
    pub fn run(mut self, faults: usize) -> Outcome<Vec<User>> {
        for fault in 1..=faults {
            let pause = self.rng.duration(Duration::ZERO, PAUSE_MAX);
            self.cell.sim.run_for(pause);
            self.habit.stop.store(fault == faults, Ordering::Relaxed);
            self.fault();
            self.start_the_dead()?;
            if self.rng.chance(400_000) {
                self.look()?;
            }
        }
        let is_over = || self.working.load(Ordering::Relaxed) == 0;
        self.cell.sim.run_until(WORK_MAX, is_over).map_err(|hang| hang.to_string())?;
        Ok(self.machines.into_iter().filter_map(|desk| desk.user).collect())
    }

    /// A fault from its begin to its end.
    fn fault(&mut self) {
        let which = self.rng.index(self.machines.len());
        match self.rng.below(9) {
            0..=2 => {
                let pause = self.any_time();
                self.crash(which, pause);
            }
            3 | 4 => self.partition(which),
            5 | 6 => self.power_failure(),
            7 => self.sleep(which),
            _ => self.jump(which),
        }
    }

    /// A time of any order of magnitude from milliseconds to minutes.
    fn any_time(&mut self) -> Duration {
        let most = [50, 2_000, 20_000, 200_000][self.rng.index(4)];
        self.rng.duration(Duration::from_millis(1), Duration::from_millis(most))
    }

    /// How long a fault lasts, and which machine crashes in it, when, and for how long.
    fn course(&mut self) -> Course {
        let lasts = self.any_time();
        let crash = self.rng.chance(300_000).then(|| {
            let which = self.rng.index(self.machines.len());
            (which, self.rng.duration(Duration::ZERO, lasts), self.any_time())
        });
        Course { lasts, crash }
    }

    /// The time of a fault passes.
    fn pass(&mut self, course: &Course) {
        let Some((which, at, pause)) = course.crash else { return self.cell.sim.run_for(course.lasts) };
        self.cell.sim.run_for(at);
        self.crash(which, pause);
        self.cell.sim.run_for(course.lasts - at);
    }

    /// From now on for this long lists may be late, and leases lost.
    fn trouble(&self, time: Duration) {
        let from = self.history.now();
        let until = from + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.history.durability(|model| model.trouble(from, until));
    }

    fn doubt(&self, which: usize, time: Duration) {
        if let Some(user) = &self.machines[which].user {
            self.history.doubt(user.number, time);
        }
    }

    fn crash(&mut self, which: usize, pause: Duration) {
        let desk = &mut self.machines[which];
        if let Some(user) = desk.user.take() {
            self.history.died(user.number);
            self.cell.sim.crash(desk.node);
            // The server waits for the machine before it replies to others.
            self.trouble(pause + GOOD_WITHIN);
        }
        self.cell.sim.run_for(pause);
    }

    /// Restarts each machine that has crashed: its process alone, the whole machine, or with an empty cache.
    fn start_the_dead(&mut self) -> Outcome {
        for which in 0..self.machines.len() {
            let desk = &mut self.machines[which];
            if desk.user.is_some() {
                continue;
            }
            desk.lives += 1;
            match self.rng.below(3) {
                0 => {}
                1 => desk.boots += 1,
                _ => {
                    let folder = self.cell.machine.settings.disk_caches.as_ref();
                    let cache = folder.map(|folder| folder.join(desk.number.to_string()));
                    cache
                        .map_or(Ok(()), std::fs::remove_dir_all)
                        .map_err(|error| format!("the cache of machine {}: {error}", desk.number))?;
                }
            }
            self.cell.sim.restart(desk.node);
            let boot = if desk.boots == 0 { BOOT.to_owned() } else { format!("boot {}", desk.boots) };
            let user = self.cell.user_on(desk.node, desk.number, &boot, self.history)?;
            desk.user = Some(User { number: desk.number + LIFE * desk.lives, ..user });
            self.begin_work(which);
        }
        Ok(())
    }

    /// Between a machine and the server nothing arrives, in one direction or both.
    fn partition(&mut self, which: usize) {
        let course = self.course();
        let (client, server) = (self.machines[which].node, self.cell.server);
        self.doubt(which, course.time() + HEARS_WITHIN);
        self.trouble(course.time() + GOOD_WITHIN);
        let direction = self.rng.below(3);
        if direction != 0 {
            self.cell.sim.cut(client, server);
        }
        if direction != 1 {
            self.cell.sim.cut(server, client);
        }
        self.pass(&course);
        self.cell.sim.mend(client, server);
        self.cell.sim.mend(server, client);
    }

    /// The power of the server fails at one of its writes, or while it writes nothing.
    fn power_failure(&mut self) {
        let (sim, server) = (&self.cell.sim, &self.cell.machine.server);
        if self.rng.chance(500_000) {
            server.disk.crash_after(self.rng.below(150));
            let _ = sim.run_until(WRITES_WITHIN, || !sim.is_up(server.node));
        } else {
            sim.run_for(self.rng.duration(Duration::ZERO, UNSENT_MAX));
        }
        sim.crash(server.node);
        let course = self.course();
        self.restart_unknown(course.time());
        self.pass(&course);
        self.cell.sim.restart(self.cell.server);
        self.cell.start();
        self.restart_unknown(Duration::ZERO);
    }

    /// The server is down for this long. Those that do not call it then do not know of its restart.
    fn restart_unknown(&self, down: Duration) {
        (0..self.machines.len()).for_each(|which| self.doubt(which, down + HEARS_WITHIN));
        self.trouble(down + GOOD_WITHIN);
    }

    /// A machine is suspended for up to five hours. A short sleep is not noticed; after a longer one nothing is relied on, as soon as a machine
    /// whose clock stood still has compared its clocks.
    fn sleep(&mut self, which: usize) {
        let node = self.machines[which].node;
        let kind = if self.rng.chance(500_000) { SleepClock::GoesOn } else { SleepClock::StandsStill };
        let longest = [1, 30, 1200, 18_000][self.rng.index(4)];
        let asleep = self.rng.duration(Duration::from_millis(10), Duration::from_secs(longest));
        let unsure = match kind {
            _ if asleep <= UNNOTICED_MAX => HEARS_WITHIN,
            SleepClock::GoesOn => Duration::ZERO,
            SleepClock::StandsStill => COMPARES_WITHIN,
        };
        self.look_again(which);
        self.doubt(which, asleep + unsure);
        self.trouble(asleep + GOOD_WITHIN);
        self.cell.sim.suspend(node, kind);
        self.cell.sim.run_for(asleep);
        self.cell.sim.resume(node);
        if asleep > UNNOTICED_MAX {
            self.cell.sim.run_for(unsure);
        }
        self.look_again(which);
    }

    /// The clock of a machine or of the server jumps by up to two hours.
    fn jump(&mut self, which: usize) {
        let node = if self.rng.chance(300_000) { self.cell.server } else { self.machines[which].node };
        let by = self.rng.duration(Duration::from_secs(1), Duration::from_secs(7200));
        let forward = self.rng.chance(500_000);
        self.cell.sim.jump_wall(node, by, forward);
    }

    /// The user of a machine reads everything, as far as the server can be reached.
    fn look_again(&self, which: usize) {
        let Some(user) = self.machines[which].user.clone() else { return };
        if let Ok(Err(error)) = self.read_all(&user) {
            self.history.failed(user.number, &error);
        }
    }

    /// A machine with an empty cache reads everything.
    fn look(&mut self) -> Outcome {
        self.newcomers += 1;
        let newcomer = self.cell.user(FIRST_NEWCOMER + self.newcomers, self.history)?;
        let looked = self.read_all(&newcomer).map_err(|hang| hang.to_string())?;
        looked.map_err(|error| format!("a new machine fails to look: {error}"))
    }

    fn read_all(&self, user: &User) -> Result<Result<(), VenusError>, Hang> {
        let (user, habit) = (user.clone(), self.habit.clone());
        self.cell.sim.block_on(user.node, LOOK_MAX, async move {
            for dir in &habit.dirs {
                user.read_all(dir, &habit.files).await?;
            }
            Ok(())
        })
    }
}

/// How a fault goes on.
struct Course {
    lasts: Duration,
    /// A machine crashes: which, how long after the begin of the fault, and how long all wait then.
    crash: Option<(usize, Duration, Duration)>,
}

impl Course {
    fn time(&self) -> Duration {
        self.lasts + self.crash.map_or(Duration::ZERO, |(_, _, pause)| pause)
    }
}

/// Counts a user as at work until it is dropped: when the work ends, or its machine crashes.
struct AtWork(Arc<AtomicUsize>);

impl AtWork {
    fn new(working: &Arc<AtomicUsize>) -> Self {
        working.fetch_add(1, Ordering::Relaxed);
        Self(working.clone())
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Difference of the numbers of a user before and after a crash of the machine.
const LIFE: usize = 10;
/// Numbers of machines that look once.
const FIRST_NEWCOMER: usize = 100;
/// Longest time between two faults.
const PAUSE_MAX: Duration = Duration::from_secs(15);
/// Time after which nothing waits that was decided under a lease.
const UNSENT_MAX: Duration = Duration::from_millis(1200);
/// Time in which a machine at work makes the server write.
const WRITES_WITHIN: Duration = Duration::from_secs(20);
/// Time after a fault in which a machine has heard of the server, and what it had decided is at the server. Calls may wait for machines that are gone.
const GOOD_WITHIN: Duration = Duration::from_secs(150);
/// Virtual time.
const LOOK_MAX: Duration = Duration::from_secs(600);
const WORK_MAX: Duration = Duration::from_secs(20_000);
