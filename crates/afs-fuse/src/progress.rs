//! What was last for and what has been done of it, in numbers, and who waits for which.

use std::task::{Context, Poll, Waker};

/// Counts work in the order in which it was last for.
#[derive(Default)]
pub(crate) struct Progress {
    last: u64,
    done: u64,
    closed: bool,
    waiting: Vec<(u64, Waker)>,
}

impl Progress {
    /// One more piece of work: its number.
    pub(crate) fn add(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The number of the latest piece.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Whether the piece with this number has been done.
    pub(crate) fn is_done(&self, number: u64) -> bool {
        self.closed || number <= self.done
    }

    /// Everything up to this number has been done. Answers whom to wake, outside of any lock.
    #[must_use]
    pub(crate) fn done_up_to(&mut self, number: u64) -> Vec<Waker> {
        self.done = self.done.max(number);
        let (closed, done) = (self.closed, self.done);
        let (ready, still): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|(until, _)| closed || *until <= done);
        self.waiting = still;
        ready.into_iter().map(|(_, waker)| waker).collect()
    }

    /// There is nobody left to do the work: all of it counts as done.
    #[must_use]
    pub(crate) fn close(&mut self) -> Vec<Waker> {
        self.closed = true;
        self.done_up_to(self.last)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Waits for a piece of work.
    pub(crate) fn poll(&mut self, number: u64, context: &mut Context<'_>) -> Poll<()> {
        if self.is_done(number) {
            return Poll::Ready(());
        }
        match self
            .waiting
            .iter_mut()
            .find(|(until, waker)| *until == number && waker.will_wake(context.waker()))
        {
            Some(_) => {}
            None => self.waiting.push((number, context.waker().clone())),
        }
        Poll::Pending
    }
}
