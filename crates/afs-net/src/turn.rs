//! What a thread may do beside its own work: how long it may stand at a disk, and the one woken task that it goes on with.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use afs_rpc::Stall;

use crate::task::Task;

/// Woken tasks that a thread goes on with after its own work, before the pool takes the rest.
const TASKS_MAX: usize = 4;

/// Whose thread this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// It runs blocking work, and may stand at a disk.
    Blocking,
    /// It receives datagrams.
    Receiving,
}

thread_local! {
    static STALL: Cell<Stall> = const { Cell::new(Stall::None) };
    /// Set while a thread takes the tasks that it wakes.
    static KIND: Cell<Option<Kind>> = const { Cell::new(None) };
    static NEXT: RefCell<Option<Arc<Task>>> = const { RefCell::new(None) };
}

/// How long the calling thread may be kept at a disk.
pub(crate) fn stall() -> Stall {
    STALL.get()
}

/// Runs `work` on a thread that may be kept for `stall` by it.
pub(crate) fn tolerating<T>(stall: Stall, work: impl FnOnce() -> T) -> T {
    let _before = Before(STALL.replace(stall));
    work()
}

/// What the thread could be kept for before.
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

/// Takes a woken task, if this thread will go on with it soon. Gives it back otherwise.
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

/// Has the pool go on with the task that this thread was to go on with.
pub(crate) fn let_go() {
    if let Some(task) = NEXT.take() {
        task.run_in_pool();
    }
}

/// The time in which a thread takes tasks.
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
