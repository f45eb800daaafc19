//! NameQueue the kernel is to forget, and how that never waits for ourselves.
//!
//! To forget a name the kernel takes the lock of its directory. A request that is under way in that directory
//! (a creation, say) holds it until it is answered, which may need a server, which may be waiting for us to
//! forget the name. So a thread of its own forgets names one by one, and when a request turns out to be in
//! its way, the kernel is notified to revalidate all names instead (INC_EPOCH), which takes no lock. But the kernel
//! may install the names of an earlier READDIRPLUS reply only after that, and then does not revalidate them. So the thread forgets
//! those names one by one too, when no request is under way in their directory any more. Nobody waits for that.

use crate::progress::Progress;
use fuser::INodeNo;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::task::{Context, Poll};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// What the kernel can be told.
pub(crate) trait NameInvalidation: Send + Sync {
    /// Forget one name. Waits for the directory's lock.
    fn invalidate(&self, directory: INodeNo, name: &[u8]);

    /// Look every name up again before its next use. Never waits. Says whether it can: kernels before 6.16 cannot, and
    /// there the name is forgotten when the request in the way has been answered.
    fn revalidate_all(&self) -> bool;
}

/// The names of one mount that are waiting to be forgotten.
#[derive(Default)]
pub(crate) struct NameQueue {
    state: Mutex<State>,
    more: Condvar,
}

/// Bounded by the names that Venus and [`crate::negative_entries::NegativeEntries`] hold.
#[derive(Default)]
struct State {
    work: VecDeque<(u64, INodeNo, Box<[u8]>)>,
    progress: Progress,
    /// NameQueue with numbers up to this one were dealt with by doubting all.
    revalidated: u64,
    /// Directories with requests under way, and how many.
    busy: HashMap<u64, u32>,
    /// NameQueue that were revalidated, by their directories, which have requests under way.
    postponed: HashMap<u64, BTreeSet<Box<[u8]>>>,
    /// The directory whose lock the thread may be waiting for.
    current: Option<u64>,
}

/// The number of a name that nobody waits for.
const UNAWAITED: u64 = 0;

impl State {
    /// A name was revalidated: it is forgotten when no request is under way in its directory.
    fn postpone(&mut self, directory: INodeNo, name: Box<[u8]>) {
        if self.busy.contains_key(&directory.0) {
            self.postponed.entry(directory.0).or_default().insert(name);
        } else {
            self.work.push_back((UNAWAITED, directory, name));
        }
    }

    /// No request is under way in a directory any more. Says whether that makes work.
    fn resume(&mut self, directory: INodeNo) -> bool {
        let Some(names) = self.postponed.remove(&directory.0) else { return false };
        self.work.extend(names.into_iter().map(|name| (UNAWAITED, directory, name)));
        true
    }

    /// Whether the kernel has been told everything.
    fn is_idle(&self) -> bool {
        self.work.is_empty() && self.postponed.is_empty() && self.current.is_none()
    }
}

impl NameQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Queues names of a directory.
    pub(crate) fn add(&self, directory: INodeNo, names: impl IntoIterator<Item = Box<[u8]>>) {
        let mut state = self.lock();
        for name in names {
            let number = state.progress.add();
            state.work.push_back((number, directory, name));
        }
        self.more.notify_one();
    }

    /// A request under way has renamed something to this name. The kernel will rely on the new name as it did on the old one, and
    /// that may be for ever; but what has become stale since it looked was said of the names of then. So the new name is forgotten
    /// as well if something became stale while the request was under way (`is_stale`), or if names are yet to be forgotten.
    pub(crate) fn renamed(&self, directory: INodeNo, name: &[u8], is_stale: bool) {
        if is_stale || !self.lock().is_idle() {
            self.add(directory, [name.into()]);
        }
    }

    /// A request begins that holds the directory's lock until its answer.
    pub(crate) fn enter(&self, directory: INodeNo, kernel: Option<&dyn NameInvalidation>) {
        let mut state = self.lock();
        *state.busy.entry(directory.0).or_default() += 1;
        if state.current == Some(directory.0)
            && let Some(kernel) = kernel
        {
            let last = state.progress.last();
            drop(state);
            self.revalidate(kernel, last);
        }
    }

    /// The request has been answered.
    pub(crate) fn leave(&self, directory: INodeNo) {
        let mut state = self.lock();
        if let Some(count) = state.busy.get_mut(&directory.0) {
            *count -= 1;
            if *count == 0 {
                state.busy.remove(&directory.0);
                if state.resume(directory) {
                    self.more.notify_one();
                }
            }
        }
    }

    /// All names queued so far are dealt with at one stroke, if the kernel can do that. Nobody waits for them any longer
    /// in any case: they may be waiting for the very request that is in the way.
    fn revalidate(&self, kernel: &dyn NameInvalidation, last: u64) -> bool {
        let done = kernel.revalidate_all();
        let mut state = self.lock();
        if done {
            state.revalidated = state.revalidated.max(last);
        }
        let wakers = state.progress.done_up_to(last);
        drop(state);
        wakers.into_iter().for_each(std::task::Waker::wake);
        done
    }

    /// The thread: forgets names until the mount is over.
    pub(crate) fn run(&self, kernel: &dyn NameInvalidation) {
        while let Some((number, directory, name, in_the_way)) = self.next() {
            let last = self.last();
            if in_the_way && self.revalidate(kernel, last) {
                self.lock().postpone(directory, name);
                continue;
            }
            self.lock().current = Some(directory.0);
            kernel.invalidate(directory, &name);
            self.lock().current = None;
            self.done(number);
        }
    }

    fn done(&self, number: u64) {
        let wakers = self.lock().progress.done_up_to(number);
        wakers.into_iter().for_each(std::task::Waker::wake);
    }

    /// The next name that still has to be forgotten, and whether a request is in the way.
    fn next(&self) -> Option<(u64, INodeNo, Box<[u8]>, bool)> {
        let mut state = self.lock();
        loop {
            if state.progress.is_closed() {
                return None;
            }
            let Some((number, directory, name)) = state.work.pop_front() else {
                self.more.wait(&mut state);
                continue;
            };
            let in_the_way = state.busy.contains_key(&directory.0);
            if in_the_way && number <= state.revalidated {
                state.postpone(directory, name);
                continue;
            }
            state.current = (!in_the_way).then_some(directory.0);
            return Some((number, directory, name, in_the_way));
        }
    }

    /// The mount is over.
    pub(crate) fn close(&self) {
        let wakers = self.lock().progress.close();
        self.more.notify_all();
        wakers.into_iter().for_each(std::task::Waker::wake);
    }

    /// The number of what was queued last.
    pub(crate) fn last(&self) -> u64 {
        self.lock().progress.last()
    }

    /// Waits until everything up to a number is dealt with.
    pub(crate) fn poll(&self, number: u64, context: &mut Context<'_>) -> Poll<()> {
        self.lock().progress.poll(number, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::task::Waker;

    /// A kernel whose forgetting waits until the test lets it go on.
    struct Kernel {
        told: Sender<&'static str>,
        go_on: Mutex<Receiver<()>>,
        can_revalidate: bool,
    }

    impl NameInvalidation for Kernel {
        fn invalidate(&self, _: INodeNo, _: &[u8]) {
            self.told.send("forget").unwrap();
            self.go_on.lock().recv().unwrap();
        }

        fn revalidate_all(&self) -> bool {
            self.told.send("doubt").unwrap();
            self.can_revalidate
        }
    }

    fn settled(names: &NameQueue) -> bool {
        let last = names.last();
        names.poll(last, &mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// The thread at work on a kernel, and the test's hold on both.
    struct Fixture {
        names: Arc<NameQueue>,
        kernel: Arc<Kernel>,
        heard: Receiver<&'static str>,
        go: Sender<()>,
        thread: std::thread::JoinHandle<()>,
    }

    fn start(can_revalidate: bool) -> Fixture {
        let (told, heard) = channel();
        let (go, go_on) = channel();
        let names = Arc::new(NameQueue::default());
        let kernel = Arc::new(Kernel { told, go_on: Mutex::new(go_on), can_revalidate });
        let (theirs, theirs_kernel) = (names.clone(), kernel.clone());
        let thread = std::thread::spawn(move || theirs.run(&*theirs_kernel));
        Fixture { names, kernel, heard, go, thread }
    }

    #[test]
    fn a_request_under_way_makes_all_names_doubtful_and_they_are_forgotten_after_it() {
        let Fixture { names, kernel, heard, go, thread } = start(true);
        names.enter(INodeNo(7), Some(&*kernel));
        names.enter(INodeNo(7), Some(&*kernel));
        names.add(INodeNo(7), [b"a"[..].into(), b"b"[..].into(), b"a"[..].into()]);
        assert_eq!(heard.recv().unwrap(), "doubt");
        while !settled(&names) {
            std::thread::yield_now();
        }
        names.leave(INodeNo(7));
        // Another directory's comes before: the first request is still under way.
        names.add(INodeNo(8), [b"c"[..].into()]);
        assert_eq!(heard.recv().unwrap(), "forget");
        go.send(()).unwrap();
        while !settled(&names) {
            std::thread::yield_now();
        }
        assert!(heard.try_recv().is_err());
        names.leave(INodeNo(7));
        for _ in ["a", "b"] {
            assert_eq!(heard.recv().unwrap(), "forget");
            assert!(settled(&names), "nobody waits for it");
            go.send(()).unwrap();
        }
        names.close();
        thread.join().unwrap();
    }

    #[test]
    fn a_request_that_comes_while_the_kernel_waits_frees_those_who_wait_for_it() {
        let Fixture { names, kernel, heard, go, thread } = start(true);
        names.add(INodeNo(7), [b"a"[..].into()]);
        assert_eq!(heard.recv().unwrap(), "forget");
        assert!(!settled(&names));
        names.enter(INodeNo(8), Some(&*kernel));
        assert!(!settled(&names));
        names.enter(INodeNo(7), Some(&*kernel));
        assert_eq!(heard.recv().unwrap(), "doubt");
        assert!(settled(&names));
        go.send(()).unwrap();
        names.close();
        thread.join().unwrap();
    }

    /// The kernel gives what it knew as `x` the name `y`, and so does not find it when it is to forget `x`.
    #[test]
    fn a_name_that_was_moved_meanwhile_is_forgotten_too() {
        let Fixture { names, kernel, heard, go, thread } = start(true);
        names.renamed(INodeNo(7), b"other", false);
        assert_eq!(names.last(), 0, "nothing is stale");
        // Another directory keeps the thread from forgetting `x` while the request is under way.
        names.add(INodeNo(8), [b"a"[..].into()]);
        assert_eq!(heard.recv().unwrap(), "forget");
        names.add(INodeNo(7), [b"x"[..].into()]);
        names.enter(INodeNo(7), Some(&*kernel));
        names.renamed(INodeNo(7), b"y", false);
        names.leave(INodeNo(7));
        for _ in ["x", "y"] {
            assert!(!settled(&names));
            go.send(()).unwrap();
            assert_eq!(heard.recv().unwrap(), "forget");
        }
        go.send(()).unwrap();
        names.renamed(INodeNo(7), b"z", true);
        assert_eq!(heard.recv().unwrap(), "forget", "something became stale while it was moved");
        go.send(()).unwrap();
        names.close();
        thread.join().unwrap();
    }

    #[test]
    fn a_kernel_that_cannot_doubt_forgets_each_name_after_the_request_in_the_way() {
        let Fixture { names, kernel, heard, go, thread } = start(false);
        names.enter(INodeNo(7), Some(&*kernel));
        names.add(INodeNo(7), [b"a"[..].into(), b"b"[..].into()]);
        assert_eq!(heard.recv().unwrap(), "doubt");
        assert_eq!(heard.recv().unwrap(), "forget");
        // The request that is in the way may be waiting for those who wait for the names.
        assert!(settled(&names));
        names.leave(INodeNo(7));
        go.send(()).unwrap();
        assert_eq!(heard.recv().unwrap(), "forget");
        go.send(()).unwrap();
        names.close();
        thread.join().unwrap();
    }
}
