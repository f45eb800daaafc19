//! Tasks that continue on the thread that wakes them: at the end of its own work a thread runs the first tasks that it
//! has woken, so that no other thread has to be woken for them.
//!
//! A task is polled by one thread at a time. Its state is one of five:
//!
//! ```text
//! RESTING ── wake ──> QUEUED ── run ──> RUNNING ── pending ──> RESTING
//!                        ^                 │ wake
//!                        └── pending ── AWAKE          RUNNING, AWAKE ── ready, panic, close ──> OVER
//! ```

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use afs_rpc::{BoxFuture, Stall};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::scheduling;

const RESTING: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
const AWAKE: u8 = 3;
const OVER: u8 = 4;

/// The waiting tasks of one pool.
#[derive(Debug)]
pub(crate) struct Tasks {
    pool: Handle,
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    closed: bool,
    next: u64,
    waiting: HashMap<u64, Arc<Task>>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("closed", &self.closed).field("waiting", &self.waiting.len()).finish()
    }
}

impl Tasks {
    pub(crate) fn new(pool: Handle) -> Arc<Self> {
        Arc::new(Self { pool, live: Mutex::default() })
    }

    /// Polls a new task on the calling thread, which the task may block for `stall`.
    pub(crate) fn start(self: &Arc<Self>, future: BoxFuture<'static, ()>, stall: Stall) {
        let Some(id) = self.next_id() else { return };
        let (state, future) = (AtomicU8::new(QUEUED), Mutex::new(Some(future)));
        let task = Arc::new(Task { tasks: self.clone(), id, begun: stall, state, future });
        scheduling::with_stall(stall, || task.run());
    }

    /// Drops all tasks that wait, and each that runs at this moment after its poll. New ones are not started.
    pub(crate) fn close(&self) {
        let waiting = {
            let mut live = self.live.lock();
            live.closed = true;
            std::mem::take(&mut live.waiting)
        };
        waiting.into_values().for_each(|task| task.drop_future());
    }

    fn next_id(&self) -> Option<u64> {
        let mut live = self.live.lock();
        live.next += 1;
        (!live.closed).then_some(live.next)
    }

    /// Registers a waiting task. `false` if the pool is closed.
    fn waits(&self, task: &Arc<Task>) -> bool {
        let mut live = self.live.lock();
        if !live.closed {
            live.waiting.insert(task.id, task.clone());
        }
        !live.closed
    }

    fn is_closed(&self) -> bool {
        self.live.lock().closed
    }
}

/// A future with its scheduling state.
pub(crate) struct Task {
    tasks: Arc<Tasks>,
    id: u64,
    /// How long it may have blocked the thread on which it began.
    begun: Stall,
    state: AtomicU8,
    future: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl Task {
    /// Whether a receiving thread may continue the task. A task that began on one without waiting for a disk may have
    /// been suspended in order to wait for one.
    pub(crate) fn may_run_on_receiver(&self) -> bool {
        self.begun != Stall::None
    }

    /// Polls the task.
    pub(crate) fn run(self: &Arc<Self>) {
        if self.state.compare_exchange(QUEUED, RUNNING, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        match self.poll() {
            Poll::Pending if self.tasks.waits(self) => self.rest(),
            Poll::Pending => self.drop_future(),
            Poll::Ready(()) => self.end(),
        }
    }

    fn poll(self: &Arc<Self>) -> Poll<()> {
        let mut future = self.future.lock();
        let Some(future) = future.as_mut() else { return Poll::Ready(()) };
        let waker = Waker::from(self.clone());
        let mut cx = Context::from_waker(&waker);
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx))).unwrap_or_else(|_| {
            tracing::error!("a task panicked; it is over");
            Poll::Ready(())
        })
    }

    fn rest(self: &Arc<Self>) {
        if self.state.compare_exchange(RUNNING, RESTING, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // Woken while it ran. Other tasks run first.
            self.state.store(QUEUED, Ordering::Release);
            self.clone().run_in_pool();
        }
        if self.tasks.is_closed() {
            self.drop_future();
        }
    }

    fn end(&self) {
        self.state.store(OVER, Ordering::Release);
        self.drop_future();
        let ended = self.tasks.live.lock().waiting.remove(&self.id);
        drop(ended);
    }

    /// Drops the future; if it is being polled, the polling thread does that.
    fn drop_future(&self) {
        let future = self.future.try_lock().and_then(|mut future| future.take());
        if catch_unwind(AssertUnwindSafe(|| drop(future))).is_err() {
            tracing::error!("a task panicked at its end");
        }
    }

    /// Queues the task for a worker of the pool.
    pub(crate) fn run_in_pool(self: Arc<Self>) {
        let pool = self.tasks.pool.clone();
        drop(pool.spawn(async move { self.run() }));
    }
}

/// Queues tasks for a worker of the pool, which runs one after the other.
pub(crate) fn run_all_in_pool(tasks: Vec<Arc<Task>>) {
    let Some(pool) = tasks.first().map(|task| task.tasks.pool.clone()) else { return };
    drop(pool.spawn(async move { scheduling::run_group(&tasks) }));
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let next = |state| match state {
            RESTING => Some(QUEUED),
            RUNNING => Some(AWAKE),
            _ => None,
        };
        if self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) == Ok(RESTING)
            && let Some(task) = scheduling::offer(self)
        {
            task.run_in_pool();
        }
    }
}
