//! Pool of threads for blocking work, with the idle ones on a stack. A thread is woken after the lock of the queue
//! has been released, since it often takes the processor from the waking one and needs that lock first.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::runtime::Handle;

use crate::scheduling::{self, Role};
use crate::threads;

/// Most threads in blocking work (disk) at one time. More work is queued.
const THREADS_MAX: usize = 64;
/// How long a thread stays without work. The first one stays always.
const IDLE_MAX: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// Handle of the pool.
#[derive(Clone)]
pub(crate) struct Blocking(Arc<Shared>);

struct Shared {
    pool: Handle,
    state: Mutex<State>,
    /// Notified when a thread has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    /// Stack of idle threads.
    idle: Vec<Arc<Idle>>,
    threads: usize,
    /// The system granted no thread the last time.
    refused: bool,
    closed: bool,
}

/// A thread that waits for work.
struct Idle {
    thread: Thread,
    woken: AtomicBool,
}

impl Idle {
    fn wake(&self) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl std::fmt::Debug for Blocking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.0.state();
        f.debug_struct("Blocking").field("threads", &state.threads).field("idle", &state.idle.len()).finish()
    }
}

impl Blocking {
    /// Starts the first thread. All threads can use `pool` implicitly.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub(crate) fn start(pool: Handle) -> io::Result<Self> {
        let shared = Arc::new(Shared { pool, state: Mutex::default(), ended: Condvar::new() });
        shared.state().threads = 1;
        shared.clone().add_thread(None)?;
        Ok(Self(shared))
    }

    /// Runs `job` when a thread is free. After [`Blocking::close`] it is dropped.
    pub(crate) fn run(&self, job: Job) {
        let mut state = self.0.state();
        if state.closed {
            drop(state);
            return drop(job);
        }
        state.queue.push_back(job);
        let idle = state.idle.pop();
        let add = idle.is_none() && state.threads < THREADS_MAX;
        state.threads += usize::from(add);
        drop(state);
        if let Some(idle) = idle {
            idle.wake();
        }
        if add {
            self.0.added(&self.0.clone().add_thread(Some(IDLE_MAX)));
        }
    }

    /// Accepts no more work. Queued work is done.
    pub(crate) fn close(&self) {
        let idle = {
            let mut state = self.0.state();
            state.closed = true;
            std::mem::take(&mut state.idle)
        };
        idle.iter().for_each(|idle| idle.wake());
    }

    /// Waits for the end of all work after [`Blocking::close`], at most `patience`.
    pub(crate) fn wait(&self, patience: Duration) {
        self.0.ended.wait_while_for(&mut self.0.state(), |state| state.threads > 0, patience);
    }
}

/// Next step of a thread.
enum Next {
    Run(Job),
    Wait(Arc<Idle>),
    End,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Notes whether the system granted a thread that is counted already. If not, the threads that are there do the work; the first one
    /// never ends. Told once until the system grants threads again.
    fn added(&self, outcome: &io::Result<()>) {
        let mut state = self.state();
        let was_refused = std::mem::replace(&mut state.refused, outcome.is_err());
        match outcome {
            Ok(()) if was_refused => tracing::info!("threads for blocking work are granted again"),
            Ok(()) => {}
            Err(error) => {
                self.end(state);
                if !was_refused {
                    tracing::warn!("{error}; fewer threads do its work meanwhile");
                }
            }
        }
    }

    /// Starts a thread, which is counted already, and which ends after `idle_max` without work.
    fn add_thread(self: Arc<Self>, idle_max: Option<Duration>) -> io::Result<()> {
        let work = move || {
            let pool = self.pool.clone();
            let _pool = pool.enter();
            self.work(idle_max);
        };
        threads::start("afs-disk", work).map(drop)
    }

    fn work(&self, idle_max: Option<Duration>) {
        loop {
            match self.next() {
                Next::Run(job) => run(job),
                Next::Wait(idle) => {
                    if !self.wait(&idle, idle_max) {
                        return;
                    }
                }
                Next::End => return,
            }
        }
    }

    fn next(&self) -> Next {
        let mut state = self.state();
        if let Some(job) = state.queue.pop_front() {
            return Next::Run(job);
        }
        if state.closed {
            self.end(state);
            return Next::End;
        }
        let idle = Arc::new(Idle { thread: thread::current(), woken: AtomicBool::new(false) });
        state.idle.push(idle.clone());
        Next::Wait(idle)
    }

    /// Waits for work. `false` if the thread has ended instead.
    fn wait(&self, idle: &Arc<Idle>, idle_max: Option<Duration>) -> bool {
        loop {
            match idle_max {
                None => thread::park(),
                Some(idle_max) => thread::park_timeout(idle_max),
            }
            if idle.woken.load(Ordering::Acquire) {
                return true;
            }
            if idle_max.is_some() {
                let mut state = self.state();
                if let Some(at) = state.idle.iter().position(|other| Arc::ptr_eq(other, idle)) {
                    // A spurious wake-up ends the thread as well, which does no harm.
                    state.idle.remove(at);
                    self.end(state);
                    return false;
                }
            }
        }
    }

    fn end(&self, mut state: MutexGuard<'_, State>) {
        state.threads -= 1;
        drop(state);
        self.ended.notify_all();
    }
}

fn run(job: Job) {
    let work = AssertUnwindSafe(|| scheduling::with_woken(Role::Blocking, job));
    if catch_unwind(work).is_err() {
        tracing::error!("blocking work panicked; its outcome is lost");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use tokio::runtime::Builder;

    fn threads() -> (tokio::runtime::Runtime, Blocking) {
        let runtime = Builder::new_current_thread().build().unwrap();
        let blocking = Blocking::start(runtime.handle().clone()).unwrap();
        (runtime, blocking)
    }

    #[test]
    fn work_that_blocks_does_not_stop_other_work() {
        let (_runtime, blocking) = threads();
        let (go, wait) = channel();
        let (tell, told) = channel();
        let also = tell.clone();
        blocking.run(Box::new(move || {
            wait.recv().unwrap();
            tell.send("first").unwrap();
        }));
        blocking.run(Box::new(move || also.send("second").unwrap()));
        assert_eq!(told.recv(), Ok("second"));
        go.send(()).unwrap();
        assert_eq!(told.recv(), Ok("first"));
    }

    #[test]
    fn threads_are_bounded_and_all_work_is_done() {
        let (_runtime, blocking) = threads();
        let (tell, told) = channel();
        let gate = Arc::new(Mutex::new(()));
        let shut = gate.lock();
        for number in 0..200 {
            let (tell, gate) = (tell.clone(), gate.clone());
            blocking.run(Box::new(move || {
                drop(gate.lock());
                tell.send(number).unwrap();
            }));
        }
        assert_eq!(blocking.0.state().threads, THREADS_MAX);
        drop(shut);
        let mut all: Vec<u32> = told.iter().take(200).collect();
        all.sort_unstable();
        assert_eq!(all, (0..200).collect::<Vec<_>>());
    }

    #[test]
    fn without_threads_the_first_one_does_all_work_and_with_them_again_others_help() {
        let (_runtime, blocking) = threads();
        let (tell, told) = channel();
        let send = |number: u32| {
            let tell = tell.clone();
            blocking.run(Box::new(move || tell.send(number).unwrap()));
        };
        let counts = || {
            let state = blocking.0.state();
            (state.threads, state.refused)
        };
        let (go, wait) = channel::<()>();
        crate::threads::tests::granting(0, || {
            blocking.run(Box::new(move || wait.recv().unwrap()));
            (0..100).for_each(send);
        });
        assert_eq!(counts(), (1, true));
        // The first thread is still at its work: others do the rest as soon as there are some.
        send(100);
        assert_eq!(told.iter().take(101).collect::<Vec<_>>(), (0..101).collect::<Vec<_>>());
        assert!(!counts().1);
        go.send(()).unwrap();
        blocking.close();
        blocking.wait(Duration::MAX);
        assert_eq!(counts(), (0, false));
    }

    #[test]
    fn a_panic_ends_the_work_alone() {
        let (_runtime, blocking) = threads();
        let (tell, told) = channel();
        blocking.run(Box::new(|| panic!("on purpose")));
        blocking.run(Box::new(move || tell.send(()).unwrap()));
        assert_eq!(told.recv(), Ok(()));
    }

    #[test]
    fn work_queued_at_the_end_is_done_and_later_work_is_refused() {
        let (_runtime, blocking) = threads();
        let (tell, told) = channel();
        let late = tell.clone();
        blocking.run(Box::new(move || tell.send("before").unwrap()));
        blocking.close();
        blocking.run(Box::new(move || late.send("after").unwrap()));
        blocking.wait(Duration::MAX);
        assert_eq!(told.iter().collect::<Vec<_>>(), ["before"]);
        assert_eq!(blocking.0.state().threads, 0);
    }
}
