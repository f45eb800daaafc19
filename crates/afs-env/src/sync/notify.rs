//! Something changed: look again.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::waiters::Waiters;

#[derive(Default)]
struct State {
    /// Counts the calls of `notify_all`; a waiter is ready when it differs from what it saw when it was made.
    epoch: u64,
    waiters: Waiters,
}

/// Wakes all who wait. Use: make [`Notify::notified`] *before* looking at the state, look, then await it.
#[derive(Clone, Default)]
pub struct Notify(Arc<Mutex<State>>);

impl Notify {
    /// Nobody waits yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes everybody whose [`Notified`] was made before this moment.
    pub fn notify_all(&self) {
        self.take_all().into_iter().for_each(Waker::wake);
    }

    /// As [`Notify::notify_all`], for a caller who holds a lock and wakes them after letting go of it.
    pub fn take_all(&self) -> Vec<Waker> {
        let mut state = self.0.lock();
        state.epoch += 1;
        state.waiters.drain()
    }

    /// Ready at the next [`Notify::notify_all`] after this moment; one that comes before the first poll counts too.
    pub fn notified(&self) -> Notified {
        let seen = self.0.lock().epoch;
        Notified { notify: self.clone(), seen, ticket: None }
    }
}

/// The future of [`Notify::notified`].
#[must_use = "futures do nothing unless awaited"]
pub struct Notified {
    notify: Notify,
    seen: u64,
    ticket: Option<u64>,
}

impl Future for Notified {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let notify = self.notify.clone();
        let mut state = notify.0.lock();
        if state.epoch != self.seen {
            return Poll::Ready(());
        }
        state.waiters.wait(&mut self.ticket, cx);
        Poll::Pending
    }
}

impl Drop for Notified {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.notify.0.lock().waiters.leave(ticket);
        }
    }
}
