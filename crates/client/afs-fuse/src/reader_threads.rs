//! Threads for reads that may never end, a bounded number for each user.
//!
//! A process can block a read of its environment without end, by mapping there a file of a file system that never
//! replies. Such a read must not delay other users or other work: each user has few threads, these threads do nothing
//! else, and a thread ends when its queue is empty. One thread is there from the start: it reads when the system grants no other.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use afs_env::refused;
use parking_lot::{Condvar, Mutex, MutexGuard};

/// Reads of one user in progress at a time.
pub(crate) const OF_USER_MAX: usize = 2;
/// Reads of all users in progress at a time.
const ALL_MAX: usize = 64;
/// Queued reads of one user, about 100 bytes each; beyond that the oldest are dropped.
pub(crate) const WAITING_MAX: usize = 256;
/// Stack of a reading thread, in bytes: its buffers are on the heap.
const STACK_LEN: usize = 128 * 1024;

/// A read, to be run once or dropped.
type Read = Box<dyn FnOnce() + Send>;

/// Starts a thread.
type Start = fn(Box<dyn FnOnce() + Send>) -> io::Result<()>;

/// The reading threads. They end when this is dropped and their queues are empty.
pub(crate) struct ReaderThreads {
    shared: Arc<Shared>,
    start: Start,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// For the thread that is always there.
    called: Condvar,
}

#[derive(Default)]
struct State {
    under_way: usize,
    users: BTreeMap<u32, User>,
    /// The thread that is always there is to read.
    is_called: bool,
    is_over: bool,
}

/// One user with reads in progress or queued.
#[derive(Default)]
struct User {
    under_way: usize,
    waiting: VecDeque<Read>,
}

impl ReaderThreads {
    /// Starts the thread that is always there.
    ///
    /// # Errors
    /// The system grants none.
    pub(crate) fn start() -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let always = shared.clone();
        start(Box::new(move || always.stand_by()))?;
        Ok(Self { shared, start })
    }

    /// Queues `read` for a user of the machine. Never waits. It is dropped unrun if too many reads are queued behind
    /// one that does not end.
    pub(crate) fn read(&self, uid: u32, read: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        let dropped = state.add(uid, Box::new(read));
        let can_begin = state.can_begin();
        drop(state);
        drop(dropped);
        if can_begin {
            self.add_thread();
        }
    }

    fn add_thread(&self) {
        let shared = self.shared.clone();
        if let Err(error) = (self.start)(Box::new(move || shared.work())) {
            tracing::debug!("{error}; another thread reads the environment of a process");
            self.lock().is_called = true;
            self.shared.called.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock()
    }
}

impl Drop for ReaderThreads {
    fn drop(&mut self) {
        self.lock().is_over = true;
        self.shared.called.notify_one();
    }
}

fn start(work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    let thread = thread::Builder::new().name("fuse-read".into()).stack_size(STACK_LEN).spawn(work);
    thread.map(drop).map_err(|error| refused("the thread `fuse-read`", &error))
}

impl Shared {
    /// Works when called, until the end.
    fn stand_by(&self) {
        loop {
            let mut state = self.state.lock();
            self.called.wait_while(&mut state, |state| !state.is_called && !state.is_over);
            if !std::mem::take(&mut state.is_called) {
                return;
            }
            drop(state);
            self.work();
        }
    }

    /// The loop of a reading thread: takes the next queued read, of the users in turn, until no read is queued.
    fn work(&self) {
        let mut done = None;
        loop {
            // In a statement of its own, so that the lock is not held during the read.
            let next = self.state.lock().next(done);
            let Some((uid, read)) = next else { return };
            if catch_unwind(AssertUnwindSafe(read)).is_err() {
                tracing::error!("reading the environment of a process panicked");
            }
            done = Some(uid);
        }
    }
}

impl State {
    /// Queues a read; returns the one that is dropped for it.
    fn add(&mut self, uid: u32, read: Read) -> Option<Read> {
        let waiting = &mut self.users.entry(uid).or_default().waiting;
        waiting.push_back(read);
        if waiting.len() > WAITING_MAX { waiting.pop_front() } else { None }
    }

    /// The next read for a thread that has ended a read of the user `done`.
    fn next(&mut self, done: Option<u32>) -> Option<(u32, Read)> {
        if let Some(uid) = done {
            self.done(uid);
        }
        if self.under_way >= ALL_MAX {
            return None;
        }
        let (uid, user) = self.users.iter_mut().find(|(_, user)| user.can_begin())?;
        let read = user.waiting.pop_front()?;
        user.under_way += 1;
        self.under_way += 1;
        Some((*uid, read))
    }

    /// Whether there is a read for a further thread.
    fn can_begin(&self) -> bool {
        self.under_way < ALL_MAX && self.users.values().any(User::can_begin)
    }

    fn done(&mut self, uid: u32) {
        self.under_way -= 1;
        let Some(user) = self.users.get_mut(&uid) else { return };
        user.under_way -= 1;
        if user.under_way == 0 && user.waiting.is_empty() {
            self.users.remove(&uid);
        }
    }
}

impl User {
    fn can_begin(&self) -> bool {
        self.under_way < OF_USER_MAX && !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A read that ends when the sender is used or dropped.
    fn blocked(readers: &ReaderThreads, uid: u32) -> Sender<()> {
        let (end, ended) = channel();
        let (tell, told) = channel();
        readers.read(uid, move || {
            let _ = tell.send(());
            let _: Result<(), _> = ended.recv();
        });
        told.recv().unwrap();
        end
    }

    /// A read of one number.
    fn number(readers: &ReaderThreads, uid: u32, number: usize) -> Receiver<usize> {
        let (tell, told) = channel();
        readers.read(uid, move || tell.send(number).unwrap_or_default());
        told
    }

    #[test]
    fn a_read_that_never_ends_holds_up_its_user_only() {
        let readers = ReaderThreads::start().unwrap();
        let stuck: Vec<_> = (0..OF_USER_MAX).map(|_| blocked(&readers, 1)).collect();
        let waiting = number(&readers, 1, 7);
        for n in 0..1000 {
            assert_eq!(number(&readers, 2, n).recv(), Ok(n));
        }
        assert_eq!(readers.lock().users[&1].waiting.len(), 1);
        drop(stuck);
        assert_eq!(waiting.recv(), Ok(7));
    }

    #[test]
    fn the_queue_behind_reads_that_never_end_is_bounded() {
        let readers = ReaderThreads::start().unwrap();
        let stuck: Vec<_> = (0..OF_USER_MAX).map(|_| blocked(&readers, 1)).collect();
        let asked: Vec<_> = (0..3 * WAITING_MAX).map(|n| number(&readers, 1, n)).collect();
        assert_eq!(readers.lock().users[&1].waiting.len(), WAITING_MAX);
        assert_eq!(readers.lock().under_way, OF_USER_MAX);
        drop(stuck);
        for (n, told) in asked.into_iter().enumerate() {
            assert_eq!(told.recv().ok(), (n >= 2 * WAITING_MAX).then_some(n));
        }
    }

    #[test]
    fn without_threads_the_one_that_is_always_there_reads_for_all_users() {
        let mut readers = ReaderThreads::start().unwrap();
        readers.start = |_| Err(io::ErrorKind::WouldBlock.into());
        let asked: Vec<_> = (0..200).map(|n| number(&readers, n % 5, n as usize)).collect();
        assert!(asked.into_iter().enumerate().all(|(n, told)| told.recv() == Ok(n)));
        let stuck = blocked(&readers, 1);
        readers.start = start;
        assert_eq!(number(&readers, 2, 3).recv(), Ok(3), "others read when there are threads again");
        drop(stuck);
    }

    #[test]
    fn a_read_that_panics_does_not_take_a_place() {
        let readers = ReaderThreads::start().unwrap();
        for n in 0..10 * OF_USER_MAX {
            readers.read(1, || panic!("a read that panics"));
            assert_eq!(number(&readers, 1, n).recv(), Ok(n));
        }
    }

    #[test]
    fn the_threads_of_all_users_are_bounded_and_everybodys_turn_comes() {
        let readers = ReaderThreads::start().unwrap();
        let mut stuck: Vec<_> = (0..ALL_MAX as u32).map(|uid| blocked(&readers, uid)).collect();
        let waiting: Vec<_> = (0..100).map(|uid| number(&readers, 1000 + uid, 3)).collect();
        assert_eq!(readers.lock().under_way, ALL_MAX);
        stuck.pop();
        assert!(waiting.iter().all(|told| told.recv() == Ok(3)));
    }
}
