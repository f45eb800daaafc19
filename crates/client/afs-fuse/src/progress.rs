//! Sequence numbers of queued and completed work, with the wakers of tasks that wait for them.

use std::task::{Context, Poll, Waker};

/// Counter of queued and of completed work. Work is numbered from 1 in the order in which it is queued.
#[derive(Default)]
pub(crate) struct Progress {
    last: u64,
    done: u64,
    closed: bool,
    waiting: Vec<(u64, Waker)>,
}

impl Progress {
    /// Numbers a new piece of work.
    pub(crate) fn add(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Number of the last piece queued.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Whether the piece with this number is done.
    pub(crate) fn is_done(&self, number: u64) -> bool {
        self.closed || number <= self.done
    }

    /// Marks everything up to this number as done. Returns the wakers of the tasks that waited, to be woken outside of
    /// any lock.
    #[must_use]
    pub(crate) fn done_up_to(&mut self, number: u64) -> Vec<Waker> {
        self.done = self.done.max(number);
        let (closed, done) = (self.closed, self.done);
        let (ready, still): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|(until, _)| closed || *until <= done);
        self.waiting = still;
        ready.into_iter().map(|(_, waker)| waker).collect()
    }

    /// Marks all work as done: the thread that does it has ended.
    #[must_use]
    pub(crate) fn close(&mut self) -> Vec<Waker> {
        self.closed = true;
        self.done_up_to(self.last)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Waits until a piece of work is done.
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
