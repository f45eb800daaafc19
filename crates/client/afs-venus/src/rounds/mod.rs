//! Rounds: changes of the names in one directory come one round after the other, and those that wait at the same
//! moment share one, so that they can go in one call.
//!
//! Nobody waits for others to come: a change that finds no round in progress begins one alone. When a round has ended,
//! the one who has waited longest begins the next, with everybody who waits too, is the same user and changes other names.

mod round;
mod seat;
mod series;

pub(crate) use seat::{Seat, Sending, Step};
pub(crate) use series::{KeptSeries, Series};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use afs_rpc::sync::oneshot;
use afs_wire::fs::CHANGES_MAX;
use parking_lot::Mutex;

use crate::identity::User;
use crate::key::{Key, Map};
use round::Round;

/// How many of those who have waited longest are asked to join a round.
const ASKED_MAX: usize = 4 * CHANGES_MAX;

/// The directories in which a round is in progress, with those who wait for the next.
#[derive(Default)]
pub(crate) struct Rounds {
    queues: Mutex<Map<Key, Queue>>,
    pub series: KeptSeries,
}

#[derive(Default)]
struct Queue {
    next: u64,
    waiting: BTreeMap<u64, Waiter>,
}

struct Waiter {
    wish: Wish,
    seat: oneshot::Sender<Seat>,
}

/// What somebody is about to change.
pub(crate) struct Wish {
    /// Whose change it is: a round is one of one user.
    pub user: User,
    /// The names; `None`: whoever it is shares the round with nobody.
    pub names: Option<Vec<Vec<u8>>>,
}

impl Rounds {
    /// Waits for a place in a round of changes of a directory, the only one in progress there. The place is given up when
    /// it is dropped.
    pub async fn enter(self: &Arc<Self>, dir: Key, wish: Wish) -> Seat {
        let (number, seated) = {
            let mut queues = self.queues.lock();
            let Some(queue) = queues.get_mut(&dir) else {
                queues.insert(dir, Queue::default());
                drop(queues);
                return Seat::new(self.round(dir, 1), 0);
            };
            queue.join(wish)
        };
        let _waiting = Waiting { rounds: self, dir, number };
        match seated.await {
            Ok(seat) => seat,
            // Nobody is taken from the queue without a seat but by himself.
            Err(_) => std::future::pending().await,
        }
    }

    fn round(self: &Arc<Self>, dir: Key, places: usize) -> Arc<Round> {
        let rounds = self.clone();
        Arc::new(Round::new(places, move || rounds.begin_next(dir)))
    }

    /// Begins the next round of a directory, if anybody waits.
    fn begin_next(self: &Arc<Self>, dir: Key) {
        let seats = {
            let mut queues = self.queues.lock();
            let seats = queues.get_mut(&dir).map(Queue::take_next).unwrap_or_default();
            if seats.is_empty() {
                queues.remove(&dir);
            }
            seats
        };
        if !seats.is_empty() {
            let round = self.round(dir, seats.len());
            for (place, seat) in seats.into_iter().enumerate() {
                // The place of somebody who has given up meanwhile is left at once.
                drop(seat.send(Seat::new(round.clone(), place)));
            }
        }
    }
}

impl Queue {
    fn join(&mut self, wish: Wish) -> (u64, oneshot::Receiver<Seat>) {
        let (seat, seated) = oneshot::channel();
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number, Waiter { wish, seat });
        (number, seated)
    }

    /// Takes the one who has waited longest, and those who may share a round with him.
    fn take_next(&mut self) -> Vec<oneshot::Sender<Seat>> {
        let mut taken = Vec::new();
        let (mut first, mut names) = (None, BTreeSet::new());
        for (number, waiter) in self.waiting.iter().take(ASKED_MAX) {
            let is_first = first.is_none();
            if is_first {
                first = Some(&waiter.wish);
            } else if !first.is_some_and(|first| first.may_share(&waiter.wish)) {
                continue;
            }
            let new = waiter.wish.names.iter().flatten();
            if is_first || new.clone().all(|name| !names.contains(name)) {
                names.extend(new);
                taken.push(*number);
            }
            if taken.len() == CHANGES_MAX {
                break;
            }
        }
        taken.iter().filter_map(|number| self.waiting.remove(number)).map(|waiter| waiter.seat).collect()
    }
}

impl Wish {
    fn may_share(&self, other: &Wish) -> bool {
        self.names.is_some() && other.names.is_some() && self.user == other.user
    }
}

/// Somebody in the queue, who leaves it when he gives up.
struct Waiting<'a> {
    rounds: &'a Rounds,
    dir: Key,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut queues = self.rounds.queues.lock();
        if let Some(queue) = queues.get_mut(&self.dir) {
            queue.waiting.remove(&self.number);
        }
    }
}

#[cfg(test)]
mod tests;
