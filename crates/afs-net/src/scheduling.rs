//! Per-thread scheduling state: how long the thread may wait for a disk, and the woken task that it runs next.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use afs_rpc::Stall;

use crate::task::Task;

/// Woken tasks that a thread runs after its own work, before the pool takes the rest.
const TASKS_MAX: usize = 4;

/// Role of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// It runs blocking work, and may wait for a disk.
    Blocking,
    /// It receives datagrams.
    Receiving,
}

thread_local! {
    static STALL: Cell<Stall> = const { Cell::new(Stall::None) };
    /// Set while a thread accepts the tasks that it wakes.
    static ROLE: Cell<Option<Role>> = const { Cell::new(None) };
    static NEXT: RefCell<Option<Arc<Task>>> = const { RefCell::new(None) };
}

/// How long the calling thread may wait for a disk.
pub(crate) fn stall() -> Stall {
    STALL.get()
}

/// Runs `work` on a thread that `work` may block for `stall`.
pub(crate) fn with_stall<T>(stall: Stall, work: impl FnOnce() -> T) -> T {
    let _restore = RestoreStall(STALL.replace(stall));
    work()
}

/// The previous value, restored on drop.
struct RestoreStall(Stall);

impl Drop for RestoreStall {
    fn drop(&mut self) {
        STALL.set(self.0);
    }
}

/// Runs `work`, and then a few of the tasks that it has woken.
pub(crate) fn with_woken(role: Role, work: impl FnOnce()) {
    let stall = if role == Role::Blocking { Stall::Any } else { Stall::None };
    with_stall(stall, || {
        let _accepting = Accepting::begin(role);
        work();
        for _ in 0..TASKS_MAX {
            let Some(task) = NEXT.take() else { break };
            task.run();
        }
    });
}

/// Accepts a woken task, if this thread will run it soon. Returns it otherwise.
pub(crate) fn offer(task: Arc<Task>) -> Option<Arc<Task>> {
    let fits = match ROLE.get() {
        None => false,
        Some(Role::Blocking) => true,
        Some(Role::Receiving) => task.may_run_on_receiver(),
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
pub(crate) fn release_to_pool() {
    if let Some(task) = NEXT.take() {
        task.run_in_pool();
    }
}

/// Scope in which a thread accepts tasks.
struct Accepting;

impl Accepting {
    fn begin(role: Role) -> Self {
        ROLE.set(Some(role));
        Self
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        ROLE.set(None);
        release_to_pool();
    }
}
