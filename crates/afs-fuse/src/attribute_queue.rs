//! Attributes that the kernel could not take back yet.
//!
//! An answer that makes a new inode is still on its way after it was written: the kernel installs it when the program
//! that last runs again, which takes long on a busy machine. A notification that comes before that finds no inode, and
//! what it should have taken back is installed after it, without limit of time. (For an inode that exists, the kernel
//! sees by itself that the answer is older than the notification.) Nothing tells when an answer has been installed. So
//! the kernel is told again and again, until it knows the inode or has given all look-ups of it back.

use crate::progress::Progress;
use afs_venus::NodeId;
use fuser::INodeNo;
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// Between two rounds, at first and after it has doubled each round.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// Inodes of one mount whose attributes are still to be taken back.
#[derive(Default)]
pub(crate) struct AttributeQueue {
    state: Mutex<State>,
    more: Condvar,
}

/// Bounded by the inodes that the kernel was given: none is in here twice, but for those in the round under way.
#[derive(Default)]
struct State {
    work: VecDeque<Queued>,
    /// Something came since the last round.
    is_new: bool,
    progress: Progress,
}

/// One inode: the number of the request, and how the kernel and Venus name it.
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

    /// The thread: tells the kernel until the mount is over. `tell` says whether it was too early once more.
    pub(crate) fn run(&self, tell: impl Fn(INodeNo, NodeId) -> bool) {
        let mut pause = PAUSE_MIN;
        while let Some((round, is_new)) = self.next(pause) {
            pause = if is_new { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
            self.done(round.into_iter().filter(|(_, ino, node)| tell(*ino, *node)).collect());
        }
    }

    /// Everything queued: what is new at once, what was too early before after a pause.
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

    /// A round is over, and these were too early again.
    fn done(&self, mut again: VecDeque<Queued>) {
        let mut state = self.lock();
        again.append(&mut state.work);
        state.work = again;
        let done = state.work.front().map_or(state.progress.last(), |(oldest, ..)| oldest - 1);
        let wakers = state.progress.done_up_to(done);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The mount is over.
    pub(crate) fn close(&self) {
        let wakers = self.lock().progress.close();
        self.more.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The number of what was queued last.
    pub(crate) fn last(&self) -> u64 {
        self.lock().progress.last()
    }

    /// Waits until everything up to a number is taken back.
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
        // Another one does not wait for the first, but who waits for both does.
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
    fn an_inode_that_waits_already_is_not_queued_twice() {
        let queue = AttributeQueue::default();
        (0..10).for_each(|_| queue.add(INodeNo(7), NodeId(7)));
        assert_eq!(queue.next(PAUSE_MIN).unwrap(), (VecDeque::from([(1, INodeNo(7), NodeId(7))]), true));
        // What comes during the round is queued: the round may have been too early for it.
        queue.add(INodeNo(7), NodeId(7));
        queue.done(VecDeque::new());
        assert!(!settled(&queue));
        assert_eq!(queue.next(PAUSE_MIN).unwrap(), (VecDeque::from([(2, INodeNo(7), NodeId(7))]), true));
        queue.done(VecDeque::new());
        assert!(settled(&queue));
    }
}
