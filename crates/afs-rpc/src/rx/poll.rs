//! The first poll of a handler, on the thread that received its call.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Waker};

/// Polls `future` once, without asking to be woken. `true` when it is over, by its end or by a panic.
///
/// A future that is pending afterwards must be polled again by whoever owns it from then on; that poll registers a
/// waker that counts, and sees whatever happened in between.
pub(super) fn poll_once<F: Future<Output = ()> + ?Sized>(future: Pin<&mut F>) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    match catch_unwind(AssertUnwindSafe(|| future.poll(&mut cx))) {
        Ok(polled) => polled.is_ready(),
        Err(_) => {
            tracing::error!("a handler panicked; its call is aborted");
            true
        }
    }
}
