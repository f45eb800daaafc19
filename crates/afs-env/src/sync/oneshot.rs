//! One value from one task to another.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// The sender went away without sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("whoever should have answered is gone")]
pub struct Gone;

struct Slot<T> {
    value: Option<T>,
    closed: bool,
    waker: Option<Waker>,
}

/// Sends the one value.
pub struct Sender<T>(Option<Arc<Mutex<Slot<T>>>>);

/// Waits for the one value.
pub struct Receiver<T>(Arc<Mutex<Slot<T>>>);

/// A connected pair.
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let slot = Arc::new(Mutex::new(Slot { value: None, closed: false, waker: None }));
    (Sender(Some(slot.clone())), Receiver(slot))
}

impl<T> Sender<T> {
    /// Hands the value over. Nobody may be waiting any more; the value is dropped with the receiver then.
    pub fn send(mut self, value: T) {
        if let Some(slot) = self.0.take() {
            close(&slot, Some(value));
        }
    }

    /// Whether the receiver has been dropped, so that the value is of no use to anyone.
    #[must_use]
    pub fn is_unwanted(&self) -> bool {
        self.0.as_ref().is_none_or(|slot| Arc::strong_count(slot) == 1)
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            close(&slot, None);
        }
    }
}

fn close<T>(slot: &Mutex<Slot<T>>, value: Option<T>) {
    let waker = {
        let mut slot = slot.lock();
        slot.value = value;
        slot.closed = true;
        slot.waker.take()
    };
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl<T> Receiver<T> {
    /// The value if it has arrived.
    pub fn try_take(&mut self) -> Option<T> {
        self.0.lock().value.take()
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, Gone>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.0.lock();
        if let Some(value) = slot.value.take() {
            return Poll::Ready(Ok(value));
        }
        if slot.closed {
            return Poll::Ready(Err(Gone));
        }
        slot.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
