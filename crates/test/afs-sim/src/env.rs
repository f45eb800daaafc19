//! `Env` of a simulated node.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use afs_rpc::{BoxFuture, ByteListener, ByteStream, Env, Instant, UnixTime};
use parking_lot::Mutex;

use crate::node::{Incarnation, NodeId};
use crate::tcp;
use crate::timeline::{Due, Event};
use crate::world::World;

/// Environment of one incarnation of a node: after its crash nothing spawned here runs any more.
#[derive(Clone)]
pub(crate) struct NodeEnv {
    pub(crate) world: World,
    pub(crate) life: Incarnation,
}

impl Env for NodeEnv {
    fn now(&self) -> Instant {
        self.world.local(self.life.node)
    }

    fn wall(&self) -> UnixTime {
        self.world.wall(self.life.node)
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        Box::pin(Sleep { world: self.world.clone(), node: self.life.node, deadline, waiting: None })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.world.spawn_on(&self.life, task);
    }

    fn blocking(&self, work: Box<dyn FnOnce() + Send>) {
        self.world.schedule_work(&self.life, work);
    }

    fn random(&self, out: &mut [u8]) {
        self.world.with(|state| state.rng.fill(out));
    }

    fn listen(&self, at: SocketAddr) -> io::Result<Box<dyn ByteListener>> {
        tcp::listen(&self.world, &self.life, at)
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn ByteStream>>> {
        Box::pin(tcp::connect(self.clone(), to))
    }
}

/// Waker of a timer.
#[derive(Clone)]
pub(crate) struct TimerWaker(Arc<Mutex<Option<Waker>>>);

impl TimerWaker {
    pub(crate) fn fire(&self) {
        let waker = self.0.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether it has not fired yet.
    fn is_set(&self) -> bool {
        self.0.lock().is_some()
    }

    fn set(&self, waker: &Waker) {
        *self.0.lock() = Some(waker.clone());
    }
}

struct Sleep {
    world: World,
    node: NodeId,
    deadline: Instant,
    waiting: Option<(Due, TimerWaker)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.world.local(self.node) >= self.deadline {
            return Poll::Ready(());
        }
        if let Some((_, timer)) = self.waiting.as_ref().filter(|(_, timer)| timer.is_set()) {
            timer.set(cx.waker());
            return Poll::Pending;
        }
        let timer = TimerWaker(Arc::new(Mutex::new(Some(cx.waker().clone()))));
        let (node, deadline) = (self.node, self.deadline);
        let due = self.world.with(|state| {
            let at = state.nodes[node.0 as usize].global(deadline);
            state.timeline.add(at, Event::Timer(timer.clone()))
        });
        self.waiting = Some((due, timer));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some((due, _)) = self.waiting.take() {
            let entry = self.world.with(|state| state.timeline.cancel(due));
            drop(entry);
        }
    }
}

/// Longest wait of blocking work for a thread of the pool.
pub(crate) const WORK_DELAY_MAX: Duration = Duration::from_micros(500);
