//! Per-thread scheduling state: how long the thread may wait for a disk, and the woken task that it runs next.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use afs_rpc::Stall;

use crate::task::Task;

/// Woken tasks that a thread runs after its own work, before the pool takes the rest.
const TASKS_MAX: usize = 4;

/// Role of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// It runs blocking work, and may wait for a disk.
    Blocking,
    /// It receives datagrams.
    Receiving,
}

thread_local! {
    static STALL: Cell<Stall> = const { Cell::new(Stall::None) };
    /// Set while a thread accepts the tasks that it wakes.
    static KIND: Cell<Option<Kind>> = const { Cell::new(None) };
    static NEXT: RefCell<Option<Arc<Task>>> = const { RefCell::new(None) };
}

/// How long the calling thread may wait for a disk.
pub(crate) fn stall() -> Stall {
    STALL.get()
}

/// Runs `work` on a thread that `work` may block for `stall`.
pub(crate) fn tolerating<T>(stall: Stall, work: impl FnOnce() -> T) -> T {
    let _before = Before(STALL.replace(stall));
    work()
}

/// The previous value, restored on drop.
struct Before(Stall);

impl Drop for Before {
    fn drop(&mut self) {
        STALL.set(self.0);
    }
}

/// Runs `work`, and then a few of the tasks that it has woken.
pub(crate) fn with_woken(kind: Kind, work: impl FnOnce()) {
    let stall = if kind == Kind::Blocking { Stall::Any } else { Stall::None };
    tolerating(stall, || {
        let _turn = Turn::begin(kind);
        work();
        for _ in 0..TASKS_MAX {
            let Some(task) = NEXT.take() else { break };
            task.run();
        }
    });
}

/// Accepts a woken task, if this thread will run it soon. Returns it otherwise.
pub(crate) fn take(task: Arc<Task>) -> Option<Arc<Task>> {
    let fits = match KIND.get() {
        None => false,
        Some(Kind::Blocking) => true,
        Some(Kind::Receiving) => task.may_run_on_receiver(),
    };
    NEXT.with_borrow_mut(|next| match next {
        None if fits => {
            *next = Some(task);
            None
        }
        _ => Some(task),
    })
}

/// Queues in the pool the task that this thread was to run.
pub(crate) fn let_go() {
    if let Some(task) = NEXT.take() {
        task.run_in_pool();
    }
}

/// Scope in which a thread accepts tasks.
struct Turn;

impl Turn {
    fn begin(kind: Kind) -> Self {
        KIND.set(Some(kind));
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        KIND.set(None);
        let_go();
    }
}
