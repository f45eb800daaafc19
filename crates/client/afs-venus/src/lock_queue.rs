//! Queue of the processes of this machine that wait for a lock on a file: who asked first is called first.
//!
//! A process is called when no lock and nobody who was called before is in its way here. From then on others are kept
//! away until it has the lock, which it may still have to get from the server, or gives up.

use std::collections::VecDeque;
use std::sync::Arc;

use afs_rpc::sync::Notify;

use crate::api::{LockKind, LockRange};
use crate::identity::TokenId;

/// Limit of processes that wait for one file; beyond it, ENOLCK.
const WAITING_MAX: usize = 10_000;
/// How often in a row a lock passes from process to process here before it is given back to the server: other machines
/// may wait for it too.
const PASSES_MAX: u32 = 16;

/// A lock of one owner, held or wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    pub owner: u64,
    pub pid: u32,
    pub range: LockRange,
    pub kind: LockKind,
}

impl Claim {
    /// True if two owners cannot hold both.
    pub fn conflicts_with(&self, other: &Claim) -> bool {
        self.owner != other.owner
            && self.range.overlaps(&other.range)
            && (self.kind == LockKind::Write || other.kind == LockKind::Write)
    }
}

/// The processes that wait, in the order of asking.
#[derive(Default)]
pub(crate) struct LockQueue {
    last: u64,
    waiting: VecDeque<Waiter>,
    /// How often the lock was passed on since it was taken at the server.
    passes: u32,
    /// Number of attempts begun, and of the last one that was answered.
    begun: u64,
    answered: u64,
    /// Notified when an attempt was answered, or somebody left.
    news: Arc<Notify>,
}

struct Waiter {
    number: u64,
    claim: Claim,
    /// Of the user whose process it is.
    token: TokenId,
    is_called: bool,
    wake: Arc<Notify>,
}

/// Number and alarm of a process in the queue.
pub(crate) type Ticket = (u64, Arc<Notify>);

impl LockQueue {
    /// Adds a process; `None` if too many wait.
    pub fn join(&mut self, claim: Claim, token: TokenId) -> Option<Ticket> {
        if self.waiting.len() >= WAITING_MAX {
            return None;
        }
        self.last += 1;
        let (number, wake) = (self.last, Arc::new(Notify::new()));
        self.waiting.push_back(Waiter { number, claim, token, is_called: false, wake: wake.clone() });
        Some((number, wake))
    }

    /// Removes a process, which has the lock or gives up.
    pub fn leave(&mut self, number: u64) {
        self.waiting.retain(|waiter| waiter.number != number);
        self.news.notify_waiters();
    }

    /// Whether a process may try to take its lock.
    pub fn is_called(&self, number: u64) -> bool {
        self.waiting.iter().any(|waiter| waiter.number == number && waiter.is_called)
    }

    /// Whether a process that was called, other than this one, keeps a claim away.
    pub fn keeps_away(&self, but: Option<u64>, claim: &Claim) -> bool {
        self.called().any(|waiter| Some(waiter.number) != but && waiter.claim.conflicts_with(claim))
    }

    /// Calls everybody in whose way no lock is any more.
    pub fn call(&mut self, held: &[Claim]) {
        for at in 0..self.waiting.len() {
            let Some(claim) = self.waiting.get(at).filter(|w| !w.is_called).map(|w| &w.claim) else {
                continue;
            };
            let is_free =
                !held.iter().any(|held| held.conflicts_with(claim)) && !self.keeps_away(None, claim);
            if let Some(waiter) = self.waiting.get_mut(at).filter(|_| is_free) {
                waiter.is_called = true;
                waiter.wake.notify_one();
            }
        }
    }

    /// Whether a lock of this kind that was taken at the server with this token is passed on to those who were called, and
    /// not given back. Whether another user may have it is for the server to say.
    pub fn pass_on(&mut self, at_server: LockKind, token: TokenId) -> bool {
        let suffices = |waiter: &Waiter| {
            let is_enough = at_server == LockKind::Write || waiter.claim.kind == LockKind::Read;
            is_enough && waiter.token == token
        };
        let passes = self.passes < PASSES_MAX && self.called().next().is_some_and(suffices);
        self.passes += u32::from(passes);
        passes
    }

    /// The lock was taken at the server.
    pub fn taken_at_server(&mut self) {
        self.passes = 0;
    }

    /// The server has the lock for this client: those who were called try again. Returns the number of the last attempt
    /// begun, for [`LockQueue::is_tried_since`]; `None` if nobody wants it.
    pub fn wake_called(&self) -> Option<(u64, Arc<Notify>)> {
        self.called().for_each(|waiter| waiter.wake.notify_one());
        self.called().next().map(|_| (self.begun, self.news.clone()))
    }

    /// Whether an attempt that began after this one was answered, or nobody wants the lock any more.
    pub fn is_tried_since(&self, attempt: u64) -> bool {
        self.answered > attempt || self.called().next().is_none()
    }

    /// Begins an attempt to take the lock; one at a time.
    pub fn begin(&mut self) {
        self.begun += 1;
    }

    /// The attempt begun last was answered.
    pub fn end(&mut self) {
        self.answered = self.begun;
        self.news.notify_waiters();
    }

    fn called(&self) -> impl Iterator<Item = &Waiter> {
        self.waiting.iter().filter(|waiter| waiter.is_called)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(owner: u64, kind: LockKind) -> Claim {
        Claim { owner, pid: 1, range: LockRange::WHOLE, kind }
    }

    fn write(owner: u64) -> Claim {
        claim(owner, LockKind::Write)
    }

    fn read(owner: u64) -> Claim {
        claim(owner, LockKind::Read)
    }

    fn join(queue: &mut LockQueue, claim: Claim) -> u64 {
        queue.join(claim, TokenId::NONE).unwrap().0
    }

    fn pass_on(queue: &mut LockQueue, at_server: LockKind) -> bool {
        queue.pass_on(at_server, TokenId::NONE)
    }

    #[test]
    fn who_asked_first_is_called_first_and_keeps_others_away() {
        let mut queue = LockQueue::default();
        let first = join(&mut queue, write(1));
        let second = join(&mut queue, write(2));
        queue.call(&[write(9)]);
        assert!(!queue.is_called(first) && !queue.keeps_away(None, &write(3)));
        queue.call(&[]);
        assert!(queue.is_called(first) && !queue.is_called(second));
        assert!(queue.keeps_away(None, &read(3)) && !queue.keeps_away(Some(first), &write(1)));
        queue.leave(first);
        queue.call(&[]);
        assert!(queue.is_called(second));
    }

    #[test]
    fn readers_are_called_together_and_one_who_holds_a_lock_is_not_behind_those_who_wait_for_it() {
        let mut queue = LockQueue::default();
        let numbers: Vec<u64> = [read(1), read(2), write(3)].map(|claim| join(&mut queue, claim)).to_vec();
        queue.call(&[]);
        assert_eq!(numbers.iter().map(|n| queue.is_called(*n)).collect::<Vec<_>>(), [true, true, false]);
        numbers[..2].iter().for_each(|n| queue.leave(*n));
        // A reader makes its lock one to write, and another one asks for one to read, while a writer waits for both.
        let again = join(&mut queue, write(1));
        queue.call(&[read(1)]);
        assert!(queue.is_called(again) && !queue.is_called(numbers[2]));
    }

    #[test]
    fn those_who_wait_are_bounded() {
        let mut queue = LockQueue::default();
        let first = join(&mut queue, write(0));
        for owner in 1..WAITING_MAX as u64 {
            join(&mut queue, write(owner));
        }
        assert!(queue.join(write(0), TokenId::NONE).is_none(), "ENOLCK");
        queue.leave(first);
        assert!(queue.join(write(0), TokenId::NONE).is_some());
    }

    #[test]
    fn a_lock_is_passed_on_a_bounded_number_of_times() {
        let mut queue = LockQueue::default();
        assert!(!pass_on(&mut queue, LockKind::Write), "nobody waits");
        join(&mut queue, write(1));
        queue.call(&[]);
        assert!(!pass_on(&mut queue, LockKind::Read), "it does not suffice");
        assert_eq!((0..100).filter(|_| pass_on(&mut queue, LockKind::Write)).count(), PASSES_MAX as usize);
        queue.taken_at_server();
        assert!(pass_on(&mut queue, LockKind::Write));
    }

    #[test]
    fn an_attempt_that_was_begun_before_the_news_does_not_count() {
        let mut queue = LockQueue::default();
        assert!(queue.wake_called().is_none());
        let number = join(&mut queue, write(1));
        queue.call(&[]);
        queue.begin();
        let (attempt, _) = queue.wake_called().unwrap();
        queue.end();
        assert!(!queue.is_tried_since(attempt));
        queue.begin();
        queue.end();
        assert!(queue.is_tried_since(attempt));
        let (attempt, _) = queue.wake_called().unwrap();
        queue.leave(number);
        assert!(queue.is_tried_since(attempt), "nobody wants it any more");
    }
}
