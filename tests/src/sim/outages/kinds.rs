//! The kinds of faults, and for each what may be lost by it and which machines may see something old.

use std::time::Duration;

use afs_sim::SleepClock;

use super::{GOOD_WITHIN, Outages};
use crate::sim::faults::{COMPARES_WITHIN, HEARS_WITHIN, UNNOTICED_MAX};
use crate::sim::history::History;

impl Outages<'_> {
    /// A fault from its begin to its end.
    pub(super) fn fault(&mut self) {
        let which = self.rng.index(self.machines.len());
        match self.rng.below(11) {
            0..3 => self.crash_some_time(which),
            3 | 4 => self.crash_after_sync(),
            5 | 6 => self.partition(which),
            7 | 8 => self.power_failure(),
            9 => self.sleep(which),
            _ => self.jump(which),
        }
    }

    pub(super) fn crash_some_time(&mut self, which: usize) {
        let pause = self.any_time();
        self.crash(which, pause);
    }

    /// A machine crashes when fsync has just returned there: what that covers is durable, although nothing else made it so.
    fn crash_after_sync(&mut self) {
        if let Some(which) = self.after_next(History::syncs) {
            self.while_unsent();
            self.crash_some_time(which);
        }
    }

    /// Waits for the next change of such a number with the user who made it. Returns the machine of that user, if it takes leases.
    pub(super) fn after_next(&self, count: impl Fn(&History) -> (u64, usize)) -> Option<usize> {
        let (before, settings) = (count(self.history), &self.cell.machine.settings);
        let of_user = |user| self.machines.iter().position(|desk| desk.is_of(user));
        let machine = || {
            let (now, user) = count(self.history);
            of_user(user).filter(|which| now != before.0 && settings.takes_leases(*which))
        };
        self.cell.sim.run_until(CHANGES_WITHIN, || machine().is_some()).ok().and_then(|()| machine())
    }

    /// A time passes in which nothing is sent because it is old.
    fn while_unsent(&mut self) {
        let pause = self.rng.duration(Duration::ZERO, UNSENT_MAX);
        self.cell.sim.run_for(pause);
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
    pub(super) fn trouble(&self, time: Duration) {
        let from = self.history.now();
        let until = from + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.history.durability(|model| model.trouble(from, until));
    }

    fn doubt(&self, which: usize, time: Duration) {
        if let Some(user) = &self.machines[which].user {
            self.history.doubt(user.number, time);
        }
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
        if self.rng.chance(500_000) {
            let (sim, server) = (&self.cell.sim, &self.cell.machine.server);
            server.disk.crash_after(self.rng.below(150));
            let _ = sim.run_until(WRITES_WITHIN, || !sim.is_up(server.node));
        } else {
            let pause = self.rng.duration(Duration::ZERO, PAUSE_OF_WRITES);
            self.cell.sim.run_for(pause);
        }
        self.server_is_down();
    }

    /// The power of the server fails while machines wait with what they have decided.
    pub(super) fn power_failure_while_unsent(&mut self) {
        self.while_unsent();
        self.server_is_down();
    }

    fn server_is_down(&mut self) {
        self.cell.sim.crash(self.cell.server);
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

/// Time in which machines at work change something, and call fsync.
const CHANGES_WITHIN: Duration = Duration::from_secs(20);
/// Time in which a change that was decided is not sent unless there are many.
const UNSENT_MAX: Duration = Duration::from_millis(500);
/// Longest time between two lists of a machine at work.
const PAUSE_OF_WRITES: Duration = Duration::from_millis(1200);
/// Time in which a machine at work makes the server write.
const WRITES_WITHIN: Duration = Duration::from_secs(20);
