//! A counted resource.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::waiters::Waiters;

struct State {
    free: usize,
    /// Tickets whose permit has been handed over but not yet picked up.
    granted: BTreeSet<u64>,
    waiters: Waiters,
}

impl State {
    /// Gives free permits to those who wait, first come, first served.
    fn hand_out(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        while self.free > 0
            && let Some((ticket, waker)) = self.waiters.pop()
        {
            self.free -= 1;
            self.granted.insert(ticket);
            woken.push(waker);
        }
        woken
    }
}

/// A number of permits. Fair: who asks first is served first.
#[derive(Clone)]
pub struct Semaphore(Arc<Mutex<State>>);

impl Semaphore {
    /// A semaphore with `permits` free permits.
    #[must_use]
    pub fn new(permits: usize) -> Self {
        let state = State { free: permits, granted: BTreeSet::new(), waiters: Waiters::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Waits for a permit. It returns to the semaphore when it is dropped.
    pub fn acquire(&self) -> Acquire {
        Acquire { semaphore: self.clone(), ticket: None }
    }

    /// A permit if one is free at this moment.
    #[must_use]
    pub fn try_acquire(&self) -> Option<Permit> {
        let mut state = self.0.lock();
        state.free.checked_sub(1).map(|left| {
            state.free = left;
            Permit(self.clone())
        })
    }

    /// How many permits are free.
    #[must_use]
    pub fn available(&self) -> usize {
        self.0.lock().free
    }

    fn release(&self) {
        let woken = {
            let mut state = self.0.lock();
            state.free += 1;
            state.hand_out()
        };
        woken.into_iter().for_each(Waker::wake);
    }
}

/// The future of [`Semaphore::acquire`].
#[must_use = "futures do nothing unless awaited"]
pub struct Acquire {
    semaphore: Semaphore,
    ticket: Option<u64>,
}

impl Future for Acquire {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Permit> {
        let semaphore = self.semaphore.clone();
        let mut state = semaphore.0.lock();
        let served = match self.ticket {
            Some(ticket) => state.granted.remove(&ticket),
            None if state.free > 0 => {
                state.free -= 1;
                true
            }
            None => false,
        };
        if served {
            self.ticket = None;
            drop(state);
            return Poll::Ready(Permit(semaphore));
        }
        state.waiters.wait(&mut self.ticket, cx);
        Poll::Pending
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let granted = {
            let mut state = self.semaphore.0.lock();
            state.waiters.leave(ticket);
            state.granted.remove(&ticket)
        };
        if granted {
            self.semaphore.release();
        }
    }
}

/// One permit, returned when dropped.
#[must_use = "a dropped permit is free again"]
pub struct Permit(Semaphore);

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permit")
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.release();
    }
}
