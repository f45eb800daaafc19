//! Answers of stores whose work runs inline.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// With work run inline every answer is there at the first poll.
pub(crate) fn wait<T>(answer: Pin<Box<dyn Future<Output = T> + Send + '_>>) -> T {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("an inline store answers at once"),
    }
}
