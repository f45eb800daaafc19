//! The machines of a world with faults: their users at work, their crashes, and their starts after that.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afs_sim::NodeId;

use super::{GOOD_WITHIN, Outages, Outcome};
use crate::sim::cell::BOOT;
use crate::sim::saver::Habit;
use crate::sim::user::User;

/// A machine with its user, who has another number in the history after each crash.
pub(super) struct Desk {
    number: usize,
    pub(super) node: NodeId,
    /// How often it has crashed.
    lives: usize,
    boots: usize,
    reads_only: bool,
    /// `None`: it has crashed.
    pub(super) user: Option<User>,
}

impl Desk {
    pub(super) fn new(number: usize, user: User, reads_only: bool) -> Self {
        Self { number, node: user.node, lives: 0, boots: 0, reads_only, user: Some(user) }
    }

    /// Whether the user with this number works there.
    pub(super) fn is_of(&self, user: usize) -> bool {
        self.user.as_ref().is_some_and(|at| at.number == user)
    }
}

impl Outages<'_> {
    /// The user of a machine begins to work, until the work ends.
    pub(super) fn begin_work(&mut self, which: usize) {
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

    /// A machine crashes, and stays down for this long.
    pub(super) fn crash(&mut self, which: usize, pause: Duration) {
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
    pub(super) fn start_the_dead(&mut self) -> Outcome {
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
