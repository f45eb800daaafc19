//! A queue of tasks that wait their turn.

use std::collections::BTreeMap;
use std::task::{Context, Waker};

/// Waiting tasks in order of arrival. A ticket stays at its place while its task polls again.
#[derive(Default)]
pub(super) struct Waiters {
    next: u64,
    queue: BTreeMap<u64, Waker>,
}

impl Waiters {
    /// Queues at the end, or renews the waker at the place that `ticket` already has.
    pub(super) fn wait(&mut self, ticket: &mut Option<u64>, cx: &mut Context<'_>) {
        let place = *ticket.get_or_insert_with(|| {
            self.next += 1;
            self.next
        });
        match self.queue.get_mut(&place) {
            Some(waker) => waker.clone_from(cx.waker()),
            None => drop(self.queue.insert(place, cx.waker().clone())),
        }
    }

    /// Takes the first one out of the queue.
    pub(super) fn pop(&mut self) -> Option<(u64, Waker)> {
        self.queue.pop_first()
    }

    /// Takes all out of the queue, in order.
    pub(super) fn drain(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.queue).into_values().collect()
    }

    /// Takes `ticket` out of the queue. `false` if it was not in it (it has been popped).
    pub(super) fn leave(&mut self, ticket: u64) -> bool {
        self.queue.remove(&ticket).is_some()
    }
}
