//! Task table and ready set of the scheduler.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use afs_rpc::BoxFuture;
use parking_lot::Mutex;

use crate::datagram::PortId;
use crate::node::{Incarnation, NodeId};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TaskId(u64);

/// A ready item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ready {
    Task(TaskId),
    Port(PortId),
}

/// The ready items. A lock of its own, since wakers are called from any context.
#[derive(Default)]
pub(crate) struct ReadySet(Mutex<VecDeque<Ready>>);

impl ReadySet {
    pub(crate) fn push(&self, item: Ready) {
        self.0.lock().push_back(item);
    }

    /// Removes the item that `choose` selects.
    pub(crate) fn take(&self, choose: impl FnOnce(usize) -> usize) -> Option<Ready> {
        let mut items = self.0.lock();
        if items.is_empty() {
            return None;
        }
        let index = choose(items.len());
        items.swap_remove_back(index)
    }

    /// Removes the item that became ready first.
    pub(crate) fn take_first(&self) -> Option<Ready> {
        self.0.lock().pop_front()
    }
}

pub(crate) struct Task {
    pub(crate) life: Incarnation,
    /// `None` while it is being polled.
    pub(crate) future: Option<BoxFuture<'static, ()>>,
    pub(crate) waker: Arc<TaskWaker>,
}

pub(crate) struct TaskWaker {
    id: TaskId,
    queued: AtomicBool,
    ready: Arc<ReadySet>,
}

impl TaskWaker {
    /// Called before each poll: a later wake-up requests another one.
    pub(crate) fn clear(&self) {
        self.queued.store(false, Ordering::Relaxed);
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            self.ready.push(Ready::Task(self.id));
        }
    }
}

#[derive(Default)]
pub(crate) struct Tasks {
    tasks: BTreeMap<TaskId, Task>,
    next: u64,
}

impl Tasks {
    pub(crate) fn spawn(&mut self, life: Incarnation, future: BoxFuture<'static, ()>, ready: &Arc<ReadySet>) {
        self.next += 1;
        let id = TaskId(self.next);
        let waker = Arc::new(TaskWaker { id, queued: AtomicBool::new(true), ready: ready.clone() });
        self.tasks.insert(id, Task { life, future: Some(future), waker });
        ready.push(Ready::Task(id));
    }

    /// Takes the future of a task for a poll, with its waker.
    pub(crate) fn start(&mut self, id: TaskId) -> Option<(BoxFuture<'static, ()>, Arc<TaskWaker>)> {
        let task = self.tasks.get_mut(&id)?;
        Some((task.future.take()?, task.waker.clone()))
    }

    /// Stores a pending future; returns it for dropping if the task has been removed.
    pub(crate) fn park(
        &mut self,
        id: TaskId,
        future: BoxFuture<'static, ()>,
    ) -> Option<BoxFuture<'static, ()>> {
        match self.tasks.get_mut(&id) {
            Some(task) => {
                task.future = Some(future);
                None
            }
            None => Some(future),
        }
    }

    /// The node of a task.
    pub(crate) fn node_of(&self, id: TaskId) -> Option<NodeId> {
        self.tasks.get(&id).map(|task| task.life.node)
    }

    pub(crate) fn finish(&mut self, id: TaskId) {
        self.tasks.remove(&id);
    }

    /// Takes all tasks whose incarnation has ended, to be dropped without a lock.
    pub(crate) fn take_dead(&mut self) -> Vec<Task> {
        self.tasks.extract_if(.., |_, task| !task.life.is_alive()).map(|(_, task)| task).collect()
    }

    pub(crate) fn take_all(&mut self) -> Vec<Task> {
        std::mem::take(&mut self.tasks).into_values().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }
}

pub(crate) fn waker_of(waker: &Arc<TaskWaker>) -> Waker {
    Waker::from(waker.clone())
}
