//! Queue of inodes whose attributes are invalidated once more, until the kernel knows the inode.
//!
//! A reply that makes a new inode is not installed when it has been written: the kernel installs it when the requesting
//! program runs again, which can take long on a busy machine. A notification before that finds no inode, and the
//! attributes that it should have invalidated are installed after it, without a time limit. (For an inode that exists,
//! the kernel itself detects that the reply is older than the notification.) Nothing signals that a reply has been
//! installed. The notification is therefore repeated until the kernel knows the inode or has returned all look-ups of
//! it.

use crate::progress::Progress;
use afs_venus::NodeId;
use fuser::INodeNo;
use std::collections::{HashSet, VecDeque};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// Pause between two rounds, at first and at most; it doubles each round. A callback waits for the round after the program has run.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(32);

/// Inodes of one mount whose attributes are still to be invalidated.
#[derive(Default)]
pub(crate) struct AttributeQueue {
    state: Mutex<State>,
    more: Condvar,
}

/// Bounded by the inodes handed out to the kernel: each is queued once, and may be once more in the round in progress.
#[derive(Default)]
struct State {
    work: VecDeque<Queued>,
    /// Whether an inode was added since the last round.
    is_new: bool,
    progress: Progress,
}

/// Sequence number, inode number and node.
type Queued = (u64, INodeNo, NodeId);

impl AttributeQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Queues an inode that the kernel does not know yet.
    pub(crate) fn add(&self, ino: INodeNo, node: NodeId) {
        let mut state = self.lock();
        if !state.work.iter().any(|(_, known, _)| *known == ino) {
            let number = state.progress.add();
            state.work.push_back((number, ino, node));
        }
        state.is_new = true;
        self.more.notify_one();
    }

    /// Loop of the thread: notifies the kernel until the mount ends. `tell` returns whether it was too early again.
    pub(crate) fn run(&self, tell: impl Fn(INodeNo, NodeId) -> bool) {
        let mut pause = PAUSE_MIN;
        while let Some((round, is_new)) = self.next(pause) {
            pause = if is_new { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
            self.done(round.into_iter().filter(|(_, ino, node)| tell(*ino, *node)).collect());
        }
    }

    /// Takes the whole queue: at once if an inode was added, otherwise after the pause.
    fn next(&self, pause: Duration) -> Option<(VecDeque<Queued>, bool)> {
        let idle = |state: &mut State| state.work.is_empty() && !state.progress.is_closed();
        let early = |state: &mut State| !state.is_new && !state.progress.is_closed();
        let mut state = self.lock();
        self.more.wait_while(&mut state, idle);
        self.more.wait_while_for(&mut state, early, pause);
        if state.progress.is_closed() {
            return None;
        }
        let is_new = std::mem::take(&mut state.is_new);
        Some((std::mem::take(&mut state.work), is_new))
    }

    /// Ends a round; `again` are the inodes that the kernel did not know.
    fn done(&self, mut again: VecDeque<Queued>) {
        let mut state = self.lock();
        let known: HashSet<INodeNo> = again.iter().map(|(_, ino, _)| *ino).collect();
        // One that was added during the round is queued again already, under its earlier number.
        again.extend(state.work.drain(..).filter(|(_, ino, _)| !known.contains(ino)));
        state.work = again;
        let done = state.work.front().map_or(state.progress.last(), |(oldest, ..)| oldest - 1);
        let wakers = state.progress.done_up_to(done);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Called when the mount ends.
    pub(crate) fn close(&self) {
        let wakers = self.lock().progress.close();
        self.more.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Number of the inode queued last.
    pub(crate) fn last(&self) -> u64 {
        self.lock().progress.last()
    }

    /// Waits until everything up to a number is invalidated.
    pub(crate) fn poll(&self, number: u64, context: &mut Context<'_>) -> Poll<()> {
        self.lock().progress.poll(number, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    fn settled(queue: &AttributeQueue) -> bool {
        let last = queue.last();
        queue.poll(last, &mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn the_kernel_is_told_until_it_knows_the_inode() {
        let queue = Arc::new(AttributeQueue::default());
        let (told, heard) = channel();
        let (answer, answers) = channel();
        let theirs = queue.clone();
        let thread = std::thread::spawn(move || {
            theirs.run(|ino, _| {
                told.send(ino.0).unwrap();
                answers.recv().unwrap()
            });
        });
        queue.add(INodeNo(7), NodeId(7));
        for _ in 0..3 {
            assert_eq!(heard.recv().unwrap(), 7);
            assert!(!settled(&queue));
            answer.send(true).unwrap();
        }
        // A waiter for the second inode alone would be woken by it; a waiter for both waits for the first one too.
        queue.add(INodeNo(8), NodeId(8));
        let mut known = Vec::new();
        while known != [8] {
            let ino = heard.recv().unwrap();
            known.extend((ino == 8).then_some(ino));
            answer.send(ino == 7).unwrap();
        }
        assert!(!settled(&queue));
        assert_eq!(heard.recv().unwrap(), 7);
        answer.send(false).unwrap();
        queue.add(INodeNo(9), NodeId(9));
        assert_eq!(heard.recv().unwrap(), 9);
        queue.close();
        assert!(settled(&queue));
        answer.send(true).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn an_inode_that_the_kernel_does_not_know_for_long_is_queued_once_however_often_it_is_broken() {
        let queue = AttributeQueue::default();
        queue.add(INodeNo(7), NodeId(7));
        for _ in 0..100 {
            let (round, _) = queue.next(PAUSE_MIN).unwrap();
            assert_eq!(round, [(1, INodeNo(7), NodeId(7))]);
            queue.add(INodeNo(7), NodeId(7));
            queue.done(round);
            assert!(!settled(&queue));
        }
        queue.next(PAUSE_MIN);
        queue.done(VecDeque::new());
        assert!(settled(&queue));
    }

    #[test]
    fn an_inode_that_waits_already_is_not_queued_twice() {
        let queue = AttributeQueue::default();
        (0..10).for_each(|_| queue.add(INodeNo(7), NodeId(7)));
        assert_eq!(queue.next(PAUSE_MIN).unwrap(), (VecDeque::from([(1, INodeNo(7), NodeId(7))]), true));
        // An inode added during the round is queued: the round may have been too early for it.
        queue.add(INodeNo(7), NodeId(7));
        queue.done(VecDeque::new());
        assert!(!settled(&queue));
        assert_eq!(queue.next(PAUSE_MIN).unwrap(), (VecDeque::from([(2, INodeNo(7), NodeId(7))]), true));
        queue.done(VecDeque::new());
        assert!(settled(&queue));
    }
}
