//! Per-thread scheduling state: how long the thread may wait for a disk, and the woken tasks that it runs next.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use afs_rpc::Stall;

use crate::task::{Task, run_all_in_pool};

/// Woken tasks that a receiving thread keeps for the end of its own work; the pool takes others at once.
const RECEIVER_KEEPS: usize = 1;
/// The same of a thread for blocking work. A commit wakes this many tasks or fewer, unless the load is high.
const BLOCKING_KEEPS: usize = 64;
/// Woken tasks that a thread runs itself. The pool takes the rest, in groups of so many.
const TASKS_MAX: usize = 16;
/// Time after which a thread begins no further task.
const TIME_MAX: Duration = Duration::from_micros(200);

/// Role of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// It runs blocking work, and may wait for a disk.
    Blocking,
    /// It receives datagrams.
    Receiving,
}

/// Work that several tasks may cause, and that is done once when all of them have run.
pub(crate) trait Later: Send + Sync {
    /// Does the work.
    fn run(&self);
}

thread_local! {
    static STALL: Cell<Stall> = const { Cell::new(Stall::None) };
    /// Set while a thread accepts the tasks that it wakes.
    static ROLE: Cell<Option<Role>> = const { Cell::new(None) };
    /// The accepted tasks, in the order in which they were woken.
    static NEXT: RefCell<VecDeque<Arc<Task>>> = const { RefCell::new(VecDeque::new()) };
    /// What is left for the end of a group of tasks, while one runs.
    static LATER: RefCell<Option<Vec<Arc<dyn Later>>>> = const { RefCell::new(None) };
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
        run_accepted(stall, TIME_MAX);
    });
}

/// Runs a few of the tasks that this thread has woken, for work that continues afterwards.
pub(crate) fn run_woken() {
    if ROLE.get() == Some(Role::Blocking) {
        run_accepted(Stall::Brief, TIME_MAX);
    }
    release_to_pool();
}

/// Runs a few accepted tasks, and begins none after `time`. The last one may block the thread for `stall`, and nothing that the
/// others have left waits for it.
fn run_accepted(stall: Stall, time: Duration) {
    let (begun, mut group) = (Instant::now(), None);
    for _ in 0..TASKS_MAX {
        let (task, others) = NEXT.with_borrow_mut(|next| (next.pop_front(), next.len()));
        let Some(task) = task else { break };
        if others == 0 {
            drop(group.take());
            with_stall(stall, || task.run());
        } else {
            group.get_or_insert_with(Group::begin);
            with_stall(Stall::None, || task.run());
        }
        if begun.elapsed() >= time {
            break;
        }
    }
}

/// Runs tasks one after the other.
pub(crate) fn run_group(tasks: &[Arc<Task>]) {
    let _group = Group::begin();
    tasks.iter().for_each(Task::run);
}

/// Leaves work for the end of the group of tasks that this thread runs. Returns it if there is no group: it is to be done now.
pub(crate) fn leave(later: Arc<dyn Later>) -> Option<Arc<dyn Later>> {
    LATER.with_borrow_mut(|left| {
        let Some(left) = left else { return Some(later) };
        if !left.iter().any(|other| std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(&later))) {
            left.push(later);
        }
        None
    })
}

/// Scope of a group of tasks, at whose end the work that they left is done. Keeps what an outer group has left so far.
struct Group(Option<Vec<Arc<dyn Later>>>);

impl Group {
    fn begin() -> Self {
        Self(LATER.replace(Some(Vec::new())))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let left = LATER.replace(self.0.take());
        left.into_iter().flatten().for_each(|later| later.run());
    }
}

/// Accepts a woken task, if this thread will run it soon. Returns it otherwise.
pub(crate) fn offer(task: Arc<Task>) -> Option<Arc<Task>> {
    let keeps = match ROLE.get() {
        Some(Role::Blocking) => BLOCKING_KEEPS,
        Some(Role::Receiving) if task.may_run_on_receiver() => RECEIVER_KEEPS,
        _ => 0,
    };
    NEXT.with_borrow_mut(|next| {
        if next.len() >= keeps {
            return Some(task);
        }
        next.push_back(task);
        None
    })
}

/// Queues in the pool the tasks that this thread was to run, several at a time: each that is queued may wake a worker.
fn release_to_pool() {
    let mut left = NEXT.take();
    while !left.is_empty() {
        let rest = left.split_off(left.len().min(TASKS_MAX));
        run_all_in_pool(std::mem::replace(&mut left, rest).into());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Tasks;
    use afs_rpc::sync::Notify;
    use parking_lot::Mutex;
    use tokio::runtime::Builder;

    #[derive(Clone, Default)]
    struct Events(Arc<Mutex<Vec<String>>>);

    impl Events {
        fn note(&self, event: String) {
            self.0.lock().push(event);
        }
    }

    impl Later for Events {
        fn run(&self) {
            self.note("later".into());
        }
    }

    /// What happens when blocking work wakes so many tasks, each of which leaves the same work.
    fn woken(tasks: usize) -> Vec<String> {
        let runtime = Builder::new_current_thread().build().unwrap();
        let (pool, notify) = (Tasks::new(runtime.handle().clone()), Arc::new(Notify::new()));
        let events = Events::default();
        let later: Arc<dyn Later> = Arc::new(events.clone());
        for number in 0..tasks {
            let (woken, events, later) = (notify.clone().notified_owned(), events.clone(), later.clone());
            let task = async move {
                woken.await;
                events.note(format!("{number} {:?}", stall()));
                leave(later).into_iter().for_each(|now| now.run());
            };
            pool.start(Box::pin(task), Stall::None);
        }
        let accepting = Accepting::begin(Role::Blocking);
        notify.notify_waiters();
        run_accepted(Stall::Any, Duration::MAX);
        drop(accepting);
        let events = events.0.lock();
        events.clone()
    }

    #[test]
    fn what_several_tasks_leave_is_done_once_and_before_the_one_that_may_block() {
        assert_eq!(woken(1), ["0 Any", "later"]);
        assert_eq!(woken(4), ["0 None", "1 None", "2 None", "later", "3 Any", "later"]);
    }

    #[test]
    fn a_thread_runs_a_bounded_number_of_the_tasks_it_has_woken() {
        assert!(woken(3 * BLOCKING_KEEPS).len() <= TASKS_MAX + 1, "the pool of this test runs nothing");
    }
}
