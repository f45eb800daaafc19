//! Small simulation for tests: one thread, virtual time, endpoints joined by a network in memory.

#![allow(dead_code)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use afs_rpc::sync::oneshot;
use afs_rpc::{
    BoxFuture, ByteListener, ByteStream, Env, EnvRef, Instant, Limits, NotifyDriver, Rx, UnixTime,
};
use afs_rx::{Config, Endpoint};
use bytes::Bytes;

/// Latency of a datagram.
pub const LATENCY: Duration = Duration::from_millis(1);

/// Time of arrival, order of sending, from, to, content.
type UnderWay = (u64, u64, SocketAddr, SocketAddr, Vec<u8>);

#[derive(Default)]
struct State {
    now: u64,
    random: u64,
    next_task: u64,
    tasks: BTreeMap<u64, BoxFuture<'static, ()>>,
    ready: VecDeque<u64>,
    timers: BTreeMap<(u64, u64), Waker>,
    next_timer: u64,
    nodes: BTreeMap<SocketAddr, Node>,
    wire: BinaryHeap<Reverse<UnderWay>>,
    sent: u64,
    /// One datagram in this many is lost; 0 is none.
    loss_one_in: u64,
}

#[derive(Clone)]
struct Node {
    rx: Rx,
    cut_off: bool,
}

/// The simulation. All tasks, timers and datagrams advance in [`World::run`] only.
pub struct World(Mutex<State>);

struct Wakeup {
    world: Weak<World>,
    task: u64,
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        if let Some(world) = self.world.upgrade() {
            world.0.lock().unwrap().ready.push_back(self.task);
        }
    }
}

struct NoKick;

impl NotifyDriver for NoKick {
    /// The simulation visits every node at each step anyway.
    fn notify(&self) {}
}

struct Shared(Arc<World>);

impl Env for Shared {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.0.lock().unwrap().now)
    }

    fn wall(&self) -> UnixTime {
        UnixTime { secs: 1_000_000_000 + self.now().as_nanos() / 1_000_000_000, nanos: 0 }
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        Box::pin(Timer { world: Arc::downgrade(&self.0), deadline: deadline.as_nanos(), key: None })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let mut state = self.0.0.lock().unwrap();
        let id = state.next_task;
        state.next_task += 1;
        state.tasks.insert(id, task);
        state.ready.push_back(id);
    }

    fn blocking(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }

    fn random(&self, out: &mut [u8]) {
        let mut state = self.0.0.lock().unwrap();
        out.iter_mut().for_each(|byte| *byte = state.next_random() as u8);
    }

    /// Only datagrams are simulated here; `afs-sim` has streams too.
    fn listen(&self, _at: SocketAddr) -> io::Result<Box<dyn ByteListener>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn connect(&self, _to: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn ByteStream>>> {
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }
}

struct Timer {
    world: Weak<World>,
    deadline: u64,
    key: Option<(u64, u64)>,
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(world) = self.world.upgrade() else { return Poll::Ready(()) };
        let mut state = world.0.lock().unwrap();
        if state.now >= self.deadline {
            return Poll::Ready(());
        }
        state.next_timer += 1;
        let fresh = (self.deadline, state.next_timer);
        let key = *self.key.get_or_insert(fresh);
        state.timers.insert(key, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let (Some(world), Some(key)) = (self.world.upgrade(), self.key) {
            world.0.lock().unwrap().timers.remove(&key);
        }
    }
}

impl State {
    fn next_random(&mut self) -> u64 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl World {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { random: seed, now: 1_000_000_000, ..State::default() })))
    }

    pub fn env(self: &Arc<Self>) -> EnvRef {
        Arc::new(Shared(self.clone()))
    }

    /// From here on one datagram in `n` is lost.
    pub fn lose_one_in(&self, n: u64) {
        self.0.lock().unwrap().loss_one_in = n;
    }

    /// Nothing reaches or leaves `address` while cut off.
    pub fn cut_off(&self, address: SocketAddr, cut: bool) {
        self.0.lock().unwrap().nodes.get_mut(&address).unwrap().cut_off = cut;
    }

    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.0.lock().unwrap().now)
    }

    pub fn node(self: &Arc<Self>, port: u16) -> (Rx, SocketAddr) {
        self.node_with(port, Config::default(), Limits::default())
    }

    pub fn node_with(self: &Arc<Self>, port: u16, config: Config, limits: Limits) -> (Rx, SocketAddr) {
        (self.node_at(([127, 0, 0, 1], port).into(), config, limits), ([127, 0, 0, 1], port).into())
    }

    /// An endpoint on another host.
    pub fn node_at(self: &Arc<Self>, address: SocketAddr, config: Config, limits: Limits) -> Rx {
        let mut seed = [0; 32];
        self.env().random(&mut seed);
        let rx = Rx::with_limits(self.env(), Endpoint::new(config, seed), Arc::new(NoKick), limits);
        self.0.lock().unwrap().nodes.insert(address, Node { rx: rx.clone(), cut_off: false });
        rx
    }

    /// Runs the simulation until `future` is ready. Panics if no event is left before that.
    pub fn run<T: Send + 'static>(self: &Arc<Self>, future: impl Future<Output = T> + Send + 'static) -> T {
        let (tell, mut told) = oneshot::channel();
        self.env().spawn(Box::pin(async move { _ = tell.send(future.await) }));
        for _ in 0..5_000_000 {
            if let Ok(value) = told.try_recv() {
                return value;
            }
            if !self.step() {
                panic!("the world stands still at {:?}", self.now());
            }
        }
        panic!("no end in sight at {:?}", self.now());
    }

    /// Runs the simulation for this long.
    pub fn run_for(self: &Arc<Self>, duration: Duration) {
        let env = self.env();
        let until = env.now() + duration;
        self.run(async move { env.sleep_until(until).await });
    }

    /// Executes one event. `false` if none is left.
    fn step(self: &Arc<Self>) -> bool {
        self.run_a_task() || self.collect_datagrams() || self.advance()
    }

    fn run_a_task(self: &Arc<Self>) -> bool {
        let (id, task) = {
            let mut state = self.0.lock().unwrap();
            let Some(id) = state.ready.pop_front() else { return false };
            (id, state.tasks.remove(&id))
        };
        if let Some(mut task) = task {
            let waker = Waker::from(Arc::new(Wakeup { world: Arc::downgrade(self), task: id }));
            if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                self.0.lock().unwrap().tasks.insert(id, task);
            }
        }
        true
    }

    fn nodes(&self) -> Vec<(SocketAddr, Node)> {
        self.0.lock().unwrap().nodes.iter().map(|(a, n)| (*a, n.clone())).collect()
    }

    fn collect_datagrams(self: &Arc<Self>) -> bool {
        let mut any = false;
        for (from, node) in self.nodes() {
            node.rx.drain_transmits(|transmit, data| {
                any = true;
                let size = transmit.segment_size.unwrap_or(data.len()).max(1);
                for datagram in data.chunks(size) {
                    self.put_on_wire(from, transmit.to, datagram, node.cut_off);
                }
            });
        }
        any
    }

    fn put_on_wire(&self, from: SocketAddr, to: SocketAddr, datagram: &[u8], cut_off: bool) {
        let mut state = self.0.lock().unwrap();
        state.sent += 1;
        let lost = state.loss_one_in > 0 && state.next_random().is_multiple_of(state.loss_one_in);
        if !lost && !cut_off {
            let at = state.now + LATENCY.as_nanos() as u64;
            let order = state.sent;
            state.wire.push(Reverse((at, order, from, to, datagram.to_vec())));
        }
    }

    /// Advances time to the next event, and executes it.
    fn advance(self: &Arc<Self>) -> bool {
        let nodes = self.nodes();
        let deadlines = nodes.iter().filter_map(|(_, n)| n.rx.poll_timeout()).map(|at| at.as_nanos()).min();
        let (now, due) = {
            let mut state = self.0.lock().unwrap();
            let wire = state.wire.peek().map(|Reverse((at, ..))| *at);
            let timer = state.timers.keys().next().map(|(at, _)| *at);
            let Some(at) = [wire, timer, deadlines].into_iter().flatten().min() else { return false };
            state.now = state.now.max(at);
            let now = state.now;
            let mut due = Vec::new();
            while state.wire.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
                due.extend(state.wire.pop());
            }
            while let Some(entry) = state.timers.first_entry().filter(|entry| entry.key().0 <= now) {
                let waker = entry.remove();
                drop(state);
                waker.wake();
                state = self.0.lock().unwrap();
            }
            (now, due)
        };
        let now = Instant::from_nanos(now);
        for Reverse((_, _, from, to, data)) in due {
            if let Some((_, node)) = nodes.iter().find(|(a, n)| *a == to && !n.cut_off) {
                node.rx.handle_datagrams(now, [(from, Bytes::from(data))]);
            }
        }
        for (_, node) in &nodes {
            if node.rx.poll_timeout().is_some_and(|at| at <= now) {
                node.rx.handle_timeout(now);
            }
        }
        true
    }
}

/// Yields to every other ready task once.
pub async fn breathe() {
    afs_rpc::future::yield_now().await;
}

/// A future that is never ready, and remembers whether it was dropped.
pub fn forever() -> impl Future<Output = ()> {
    poll_fn(|_| Poll::Pending)
}

pub type Seen = Arc<Mutex<BTreeSet<u32>>>;
