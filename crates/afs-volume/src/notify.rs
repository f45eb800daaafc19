//! Wakes the background.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, MutexGuard};

/// A flag that one task waits for. Notifications that come while nobody waits are kept as one.
#[derive(Clone, Default)]
pub(crate) struct Notify(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    raised: bool,
    waker: Option<Waker>,
}

impl Notify {
    pub(crate) fn notify(&self) {
        let waker = {
            let mut state = self.lock();
            state.raised = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn wait(&self) -> Notified {
        Notified(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

/// Resolves at the next notification, or at once if there was one.
pub(crate) struct Notified(Notify);

impl Future for Notified {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if std::mem::take(&mut state.raised) {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
