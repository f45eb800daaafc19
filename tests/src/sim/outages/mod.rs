//! Faults that come one after the other, some of them during another one, while machines work: crashes of machines and of the server, partitions,
//! machines that sleep, clocks that jump. After some of them a new machine looks at everything.
//!
//! Some faults come when the work has just ended, or when all that was decided is sent. The machines are given time to make good what is lost by
//! them, and what is missing then was lost: while others work, that would be replaced, or may still be on its way. For each fault the history
//! records what may be lost by it, and which machines may see something old.

mod kinds;
mod machines;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afs_sim::{Hang, SimRng};
use afs_venus::VenusError;

use super::cell::Cell;
use super::history::History;
use super::saver::Habit;
use super::user::User;
use machines::Desk;

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

impl<'a> Outages<'a> {
    /// The users of machines 0, 1, ... begin to work; the last one reads only.
    #[must_use]
    pub fn new(cell: &'a Cell, history: &'a History, users: Vec<User>, habit: Habit, rng: SimRng) -> Self {
        let last = users.len() - 1;
        let desk = |(number, user)| Desk::new(number, user, number == last);
        let machines: Vec<Desk> = users.into_iter().enumerate().map(desk).collect();
        let working = Arc::default();
        let mut outages = Self { cell, history, machines, habit, working, newcomers: 0, rng };
        (0..=last).for_each(|which| outages.begin_work(which));
        outages
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
            let is_last = fault == faults;
            match is_last || self.rng.chance(350_000) {
                true => self.fault_after_work()?,
                false => self.fault_beside_work()?,
            }
            if !is_last && self.habit.stops() {
                self.resume_work()?;
            }
        }
        let is_over = || self.working.load(Ordering::Relaxed) == 0;
        self.cell.sim.run_until(WORK_MAX, is_over).map_err(|hang| hang.to_string())?;
        Ok(self.machines.into_iter().filter_map(|desk| desk.user).collect())
    }

    fn fault_beside_work(&mut self) -> Outcome {
        self.fault();
        self.start_the_dead()?;
        if self.rng.chance(400_000) {
            self.look()?;
        }
        Ok(())
    }

    /// The work ends when a machine has just changed something. If that machine crashes after a while, it must lose nothing.
    fn fault_after_work(&mut self) -> Outcome {
        let changed = self.after_next(History::stores);
        self.habit.stop.store(true, Ordering::Relaxed);
        let wait = self.rng.duration(SENT_FOR_SURE, 4 * SENT_FOR_SURE);
        match (self.rng.below(4), changed) {
            (0 | 1, Some(which)) => {
                self.cell.sim.run_for(wait);
                self.crash_some_time(which);
            }
            (2, _) => self.power_failure_while_unsent(),
            _ => self.fault(),
        }
        self.start_the_dead()
    }

    /// What can be made good is made good. A new machine looks whether it was, and the work begins again.
    fn resume_work(&mut self) -> Outcome {
        self.cell.sim.run_for(GOOD_WITHIN + SENT_FOR_SURE);
        self.look()?;
        (self.habit.stop, self.habit.period) = (Arc::default(), self.habit.period + 1);
        (0..self.machines.len()).for_each(|which| self.begin_work(which));
        Ok(())
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
        let objects = self.history.last_objects(OBJECTS);
        self.cell.sim.block_on(user.node, LOOK_MAX, async move {
            for dir in &habit.dirs {
                user.read_all(dir, &habit.files).await?;
            }
            for object in &objects {
                user.read_object(object).await?;
            }
            Ok(())
        })
    }
}

/// Numbers of machines that look once.
const FIRST_NEWCOMER: usize = 100;
/// Files that are made once of which all are looked at, the last ones.
const OBJECTS: usize = 60;
/// Longest time between two faults.
const PAUSE_MAX: Duration = Duration::from_secs(15);
/// Time after which all is sent that was decided under a lease, if there is no fault: more than the model gives it.
const SENT_FOR_SURE: Duration = Duration::from_millis(2500);
/// Time after a fault in which a machine has heard of the server, and what it had decided is at the server. Calls may wait for machines that are gone.
const GOOD_WITHIN: Duration = Duration::from_secs(150);
/// Virtual time.
const LOOK_MAX: Duration = Duration::from_secs(600);
const WORK_MAX: Duration = Duration::from_secs(20_000);
