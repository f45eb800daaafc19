//! Combinators of futures: select, join, yield; without a runtime.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

/// Which of two futures was first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Either<A, B> {
    /// The first one.
    Left(A),
    /// The second one.
    Right(B),
}

/// The value of whichever completes first; `left` if both have. The other one is dropped.
pub async fn select<A: Future, B: Future>(left: A, right: B) -> Either<A::Output, B::Output> {
    let mut left = pin!(left);
    let mut right = pin!(right);
    poll_fn(|cx| {
        if let Poll::Ready(done) = left.as_mut().poll(cx) {
            return Poll::Ready(Either::Left(done));
        }
        right.as_mut().poll(cx).map(Either::Right)
    })
    .await
}

/// Both values, awaited concurrently.
pub async fn join<A: Future, B: Future>(left: A, right: B) -> (A::Output, B::Output) {
    let mut left = pin!(left);
    let mut right = pin!(right);
    let (mut first, mut second) = (None, None);
    poll_fn(|cx| {
        poll_into(left.as_mut(), &mut first, cx);
        poll_into(right.as_mut(), &mut second, cx);
        match (first.take(), second.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            (a, b) => {
                (first, second) = (a, b);
                Poll::Pending
            }
        }
    })
    .await
}

fn poll_into<F: Future>(future: Pin<&mut F>, slot: &mut Option<F::Output>, cx: &mut Context<'_>) {
    if slot.is_none()
        && let Poll::Ready(done) = future.poll(cx)
    {
        *slot = Some(done);
    }
}

/// All values, in the order of `futures`, awaited concurrently.
///
/// Every wake-up polls all unfinished ones: for tens of futures, not for thousands.
pub async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut work: Vec<_> = futures.into_iter().map(|f| (Box::pin(f), None)).collect();
    poll_fn(|cx| {
        let mut pending = false;
        for (future, slot) in &mut work {
            poll_into(future.as_mut(), slot, cx);
            pending |= slot.is_none();
        }
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    work.into_iter().filter_map(|(_, slot)| slot).collect()
}

/// The value and the index of the first future that completes; the others are dropped. Never completes for an empty
/// list.
pub async fn select_all<F: Future>(futures: impl IntoIterator<Item = F>) -> (usize, F::Output) {
    let mut work: Vec<_> = futures.into_iter().map(Box::pin).collect();
    poll_fn(|cx| {
        for (index, future) in work.iter_mut().enumerate() {
            if let Poll::Ready(done) = future.as_mut().poll(cx) {
                return Poll::Ready((index, done));
            }
        }
        Poll::Pending
    })
    .await
}

/// Lets other tasks run once.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
