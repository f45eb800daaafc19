//! Futures of stores whose blocking work runs inline, for tests.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// With blocking work run inline every result is ready at the first poll.
pub(crate) fn wait<T>(answer: Pin<Box<dyn Future<Output = T> + Send + '_>>) -> T {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("an inline store answers at once"),
    }
}
