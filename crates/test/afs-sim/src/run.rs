//! Run loop: one ready task at a time, then the next event of the timeline.

use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use afs_rpc::Instant;
use parking_lot::Mutex;

use crate::datagram::{Port, PortId};
use crate::disk::Receiving;
use crate::node::NodeId;
use crate::task::{Ready, TaskId, waker_of};
use crate::timeline::Event;
use crate::world::World;

/// A condition was not met within its limit of virtual time.
#[derive(Clone, PartialEq, Eq)]
pub struct Hang {
    /// When the wait ended.
    pub at: Instant,
    /// Why the wait ended.
    pub reason: &'static str,
    /// The last events.
    pub log: String,
}

impl fmt::Debug for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} {}\n{}", self.at, self.reason, self.log)
    }
}

impl std::error::Error for Hang {}

enum Step {
    Ran,
    Idle,
}

impl World {
    /// Runs `work` on a node until it is done.
    ///
    /// # Errors
    /// [`Hang`] when it is not done after `limit` of virtual time, when no event is left, or when the node crashes.
    pub fn block_on<T, F>(&self, node: NodeId, limit: Duration, work: F) -> Result<T, Hang>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let answer = Arc::new(Mutex::new(None));
        let slot = answer.clone();
        let life = self.life(node);
        let task = async move {
            let value = work.await;
            *slot.lock() = Some(value);
        };
        self.spawn_on(&life, Box::pin(task));
        let take = || answer.lock().take();
        let mut value = None;
        self.run_until(limit, || {
            value = take();
            value.is_some() || !life.is_alive()
        })?;
        value.or_else(take).ok_or_else(|| self.hang("the node died"))
    }

    /// Runs until `done`, called after every event, returns true.
    ///
    /// # Errors
    /// [`Hang`] when it has not after `limit` of virtual time, or when no event is left.
    pub fn run_until(&self, limit: Duration, mut done: impl FnMut() -> bool) -> Result<(), Hang> {
        let end = self.now() + limit;
        let mut steps_here = 0u64;
        let mut here = self.now();
        while !done() {
            match self.step(end) {
                Step::Ran => {}
                Step::Idle if self.now() >= end => return Err(self.hang("the time given is over")),
                Step::Idle => return Err(self.hang("nothing is left that could happen")),
            }
            let now = self.now();
            steps_here = if now == here { steps_here + 1 } else { 0 };
            here = now;
            if steps_here > STEPS_PER_INSTANT_MAX {
                return Err(self.hang("tasks wake each other without end"));
            }
        }
        Ok(())
    }

    /// Advances virtual time by `time`.
    pub fn run_for(&self, time: Duration) {
        let end = self.now() + time;
        let _ = self.run_until(time, || self.now() >= end);
        self.with(|state| state.now = state.now.max(end));
    }

    /// Completes when the node's current incarnation has ended.
    pub fn died(&self, node: NodeId) -> impl Future<Output = ()> + Send + use<> {
        let world = self.clone();
        let life = self.life(node);
        poll_fn(move |cx| {
            if !life.is_alive() {
                return Poll::Ready(());
            }
            world.with(|state| state.nodes[node.0 as usize].watchers.push(cx.waker().clone()));
            Poll::Pending
        })
    }

    fn hang(&self, reason: &'static str) -> Hang {
        Hang { at: self.now(), reason, log: self.log_tail(HANG_LOG_LINES) }
    }

    /// Runs one ready task, or advances to the next event up to `end`.
    fn step(&self, end: Instant) -> Step {
        let ready = self.with(|state| match state.in_order {
            true => self.shared.ready.take_first(),
            false => self.shared.ready.take(|count| state.rng.index(count)),
        });
        match ready {
            Some(item) if self.defer_ready(item) => {}
            Some(Ready::Task(id)) => self.run_task(id),
            Some(Ready::Port(id)) => self.run_port(id),
            None => match self.next_event(end) {
                Some(event) => {
                    if let Some(event) = self.defer_work(event) {
                        self.execute(event);
                    }
                }
                None => return Step::Idle,
            },
        }
        self.remove_dead();
        Step::Ran
    }

    /// The next event of the timeline, with the clock advanced to it.
    fn next_event(&self, end: Instant) -> Option<Event> {
        self.with(|state| {
            let at = state.timeline.next_at().filter(|at| *at <= end);
            state.now = state.now.max(at.unwrap_or(end));
            let now = state.now;
            at.and_then(|_| state.timeline.pop_due(now))
        })
    }

    fn execute(&self, event: Event) {
        match event {
            Event::Timer(timer) => timer.fire(),
            Event::Arrival { from, to, data } => self.with(|state| state.arrive(from, to, data)),
            Event::Segments(id, side) => {
                let woken = self.with(|state| state.segments_due(id, side));
                woken.into_iter().for_each(Waker::wake);
            }
            Event::PortTimeout(id) => self.with(|state| {
                if let Some(port) = state.net.ports.get_mut(&id) {
                    port.timeout = None;
                    port.timed_out = true;
                    state.make_ready(id);
                }
            }),
            Event::Work(life, work) => {
                if life.is_alive() {
                    work();
                }
            }
        }
    }

    fn run_task(&self, id: TaskId) {
        let Some((mut future, waker)) = self.with(|state| state.tasks.start(id)) else { return };
        waker.clear();
        let std_waker = waker_of(&waker);
        match future.as_mut().poll(&mut Context::from_waker(&std_waker)) {
            Poll::Ready(()) => self.with(|state| state.tasks.finish(id)),
            Poll::Pending => {
                let orphan = self.with(|state| state.tasks.park(id, future));
                drop(orphan);
            }
        }
    }

    fn run_port(&self, id: PortId) {
        let work = self.with(|state| {
            let port = state.net.ports.get_mut(&id)?;
            let now = state.nodes[port.life.node.0 as usize].local(state.now);
            port.queued = false;
            let arrived = std::mem::take(&mut port.inbox);
            let timed_out = std::mem::take(&mut port.timed_out);
            let handle = Port { world: self.clone(), id, address: port.address, life: port.life.clone() };
            Some((port.handler.clone(), handle, now, arrived, timed_out))
        });
        if let Some((handler, port, now, arrived, timed_out)) = work {
            let _receiving = Receiving::begin();
            handler.service(&port, now, arrived, timed_out);
        }
    }
}

/// More wake-ups than that at one instant are a loop, not work.
const STEPS_PER_INSTANT_MAX: u64 = 2_000_000;
const HANG_LOG_LINES: usize = 120;
