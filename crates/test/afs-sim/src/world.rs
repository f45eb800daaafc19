//! The simulated world: its state, and the handles on it.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{BoxFuture, EnvRef, Instant, UnixTime};
use parking_lot::Mutex;

use crate::datagram::{Port, PortHandler, PortId, PortState};
use crate::disk::SimDisk;
use crate::env::{NodeEnv, WORK_DELAY_MAX};
use crate::event_log::{EventLog, Line};
use crate::net::{LinkConfig, NetStats, Network};
use crate::node::{Incarnation, Node, NodeId};
use crate::rng::SimRng;
use crate::suspension::Suspension;
use crate::task::{Ready, ReadySet, Tasks};
use crate::timeline::{Event, Timeline};

/// Configuration of a world.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Determines every choice.
    pub seed: u64,
    /// The wall clock at the start, seconds since 1970. Default 2026-01-01.
    pub wall_start: u64,
    /// Events kept for [`World::log_tail`]. Default 400.
    pub log_lines: usize,
    /// Whether ready tasks run in the order in which they became ready, not in one that the seed chooses. Default: no.
    pub in_order: bool,
}

impl WorldConfig {
    /// The defaults, with a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, wall_start: 1_767_225_600, log_lines: 400, in_order: false }
    }
}

/// Owns a world. Dropping it drops every task in it.
pub struct Sim(World);

impl Sim {
    /// A world without nodes.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_config(WorldConfig::new(seed))
    }

    /// A world without nodes, with a configuration.
    #[must_use]
    pub fn with_config(config: WorldConfig) -> Self {
        let state = State {
            now: Instant::from_nanos(1),
            wall_start: config.wall_start,
            in_order: config.in_order,
            rng: SimRng::new(config.seed),
            tasks: Tasks::default(),
            timeline: Timeline::default(),
            net: Network::default(),
            nodes: Vec::new(),
            disks: Vec::new(),
            event_log: EventLog::new(config.log_lines),
            ready: Arc::default(),
        };
        let ready = state.ready.clone();
        Self(World { shared: Arc::new(Shared { state: Mutex::new(state), ready }) })
    }

    /// A handle that tasks may keep.
    #[must_use]
    pub fn world(&self) -> World {
        self.0.clone()
    }
}

impl Deref for Sim {
    type Target = World;

    fn deref(&self) -> &World {
        &self.0
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        // Tasks and handlers hold handles on the world, and dropping one may affect others.
        loop {
            let (tasks, events, ports) = self.with(|state| {
                state.nodes.iter().for_each(|node| node.life.end());
                let ports = std::mem::take(&mut state.net.ports);
                state.net.bound.clear();
                (state.tasks.take_all(), state.timeline.take_all(), ports)
            });
            if tasks.is_empty() && events.is_empty() && ports.is_empty() {
                return;
            }
        }
    }
}

/// A handle on a world.
#[derive(Clone)]
pub struct World {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) ready: Arc<ReadySet>,
}

pub(crate) struct State {
    pub(crate) now: Instant,
    wall_start: u64,
    pub(crate) in_order: bool,
    pub(crate) rng: SimRng,
    pub(crate) tasks: Tasks,
    pub(crate) timeline: Timeline,
    pub(crate) net: Network,
    pub(crate) nodes: Vec<Node>,
    pub(crate) disks: Vec<(NodeId, SimDisk)>,
    pub(crate) event_log: EventLog,
    ready: Arc<ReadySet>,
}

impl World {
    /// Must not run foreign code: no wake-up, no drop of a future.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.shared.state.lock())
    }

    /// Time since the world began, as its software sees it.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.with(|state| state.now)
    }

    /// Initial value of wall clocks that have not been moved: time since 1970.
    #[must_use]
    pub fn wall_start(&self) -> Duration {
        self.with(|state| Duration::from_secs(state.wall_start))
    }

    /// The time on a machine's own monotonic clock.
    pub(crate) fn local(&self, node: NodeId) -> Instant {
        self.with(|state| state.nodes[node.0 as usize].local(state.now))
    }

    /// A separate sequence of choices, which does not change with what the world draws later.
    #[must_use]
    pub fn fork_rng(&self) -> SimRng {
        self.with(|state| state.rng.fork())
    }

    /// A new host that owns the given address.
    #[must_use]
    pub fn node(&self, name: &str, address: IpAddr) -> NodeId {
        self.with(|state| {
            let id = NodeId(u32::try_from(state.nodes.len()).unwrap_or(u32::MAX));
            state.nodes.push(Node::new(id, name));
            state.net.owners.insert(address, id);
            id
        })
    }

    /// Adds an address to a node.
    pub fn add_address(&self, node: NodeId, address: IpAddr) {
        self.with(|state| state.net.owners.insert(address, node));
    }

    /// The environment of a node's current incarnation.
    #[must_use]
    pub fn env(&self, node: NodeId) -> EnvRef {
        Arc::new(NodeEnv { world: self.clone(), life: self.life(node) })
    }

    pub(crate) fn life(&self, node: NodeId) -> Incarnation {
        self.with(|state| state.nodes[node.0 as usize].life.clone())
    }

    /// Binds an address of a node. A port already bound there is replaced.
    pub fn bind(&self, node: NodeId, address: SocketAddr, handler: Arc<dyn PortHandler>) -> Port {
        let life = self.life(node);
        let (id, gone) = self.with(|state| state.bind(life.clone(), address, handler));
        drop(gone);
        Port { world: self.clone(), id, address, life }
    }

    /// A new disk of a node. It survives the node's crashes, less unsynced data.
    #[must_use]
    pub fn disk(&self, node: NodeId) -> SimDisk {
        let disk = SimDisk::new(self.fork_rng());
        disk.belong_to(self.life(node));
        self.with(|state| state.disks.push((node, disk.clone())));
        disk
    }

    /// Properties of links without settings of their own.
    pub fn set_link(&self, link: LinkConfig) {
        self.with(|state| state.net.link = link);
    }

    /// Properties of the link from one node to another; the opposite direction has its own. A node's link to itself loses
    /// nothing and takes a few microseconds until it has settings.
    pub fn set_link_between(&self, from: NodeId, to: NodeId, link: LinkConfig) {
        self.with(|state| state.net.links.insert((from, to), link));
    }

    /// Drops all datagrams from one node to another, those in flight too. Segments of streams are retransmitted until
    /// [`World::mend`], or until the sender's time-out.
    pub fn cut(&self, from: NodeId, to: NodeId) {
        self.note(format!("cut {} > {}", self.name(from), self.name(to)));
        self.with(|state| state.net.cuts.insert((from, to)));
    }

    /// Ends [`World::cut`].
    pub fn mend(&self, from: NodeId, to: NodeId) {
        self.note(format!("mend {} > {}", self.name(from), self.name(to)));
        self.with(|state| state.net.cuts.remove(&(from, to)));
    }

    /// Moves a node's wall clock. The monotonic clock is unaffected.
    pub fn jump_wall(&self, node: NodeId, by: Duration, forward: bool) {
        self.note(format!("clock of {} jumps {}{by:?}", self.name(node), if forward { "+" } else { "-" }));
        self.with(|state| {
            let node = &mut state.nodes[node.0 as usize];
            if forward { node.wall_ahead += by } else { node.wall_behind += by }
        });
    }

    pub(crate) fn wall(&self, node: NodeId) -> UnixTime {
        self.with(|state| {
            let node = &state.nodes[node.0 as usize];
            let start = Duration::from_secs(state.wall_start) + node.wall_ahead;
            let time = (start + (state.now - Instant::ZERO)).saturating_sub(node.wall_behind);
            UnixTime { secs: time.as_secs(), nanos: time.subsec_nanos() }
        })
    }

    /// Whether the node runs.
    #[must_use]
    pub fn is_up(&self, node: NodeId) -> bool {
        self.life(node).is_alive()
    }

    /// Ends a node's incarnation at this instant: its tasks, ports and pending work are dropped, and its disks keep
    /// what a power failure might leave.
    pub fn crash(&self, node: NodeId) {
        self.life(node).end();
        self.remove_dead();
    }

    /// Begins a node's next incarnation. Its software must be started again, in its new [`World::env`].
    ///
    /// A node that still runs is crashed first.
    pub fn restart(&self, node: NodeId) {
        self.crash(node);
        self.note(format!("start {}", self.name(node)));
        let life = Incarnation::new(node);
        let disks = self.with(|state| {
            let slot = &mut state.nodes[node.0 as usize];
            (slot.life, slot.removed, slot.suspension) = (life.clone(), false, Suspension::default());
            state
                .disks
                .iter()
                .filter(|(owner, _)| *owner == node)
                .map(|(_, disk)| disk.clone())
                .collect::<Vec<_>>()
        });
        disks.iter().for_each(|disk| disk.belong_to(life.clone()));
    }

    /// Removes the remains of every node whose incarnation has ended, by [`World::crash`] or by its disk.
    pub(crate) fn remove_dead(&self) {
        let Some(remains) = self.with(State::take_remains) else { return };
        for disk in &remains.disks {
            disk.power_off();
        }
        // Dropping futures runs their destructors, which may call back into the world.
        drop(remains.ports);
        drop(remains.tasks);
        drop(remains.waiting);
        remains.watchers.into_iter().for_each(std::task::Waker::wake);
    }

    /// Adds a line to the log.
    pub fn note(&self, text: impl Display) {
        let text = text.to_string();
        self.with(|state| {
            let now = state.now;
            state.event_log.add(now, Line::Text(text));
        });
    }

    /// The last events in words, oldest first.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> String {
        self.with(|state| state.event_log.tail(lines))
    }

    /// The last notes in words, oldest first, without the datagrams between them.
    #[must_use]
    pub fn notes_tail(&self, lines: usize) -> String {
        self.with(|state| state.event_log.notes(lines))
    }

    /// A hash of all events so far: equal for equal runs.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.with(|state| state.event_log.fingerprint())
    }

    /// Counts of the network.
    #[must_use]
    pub fn net_stats(&self) -> NetStats {
        self.with(|state| state.net.stats)
    }

    /// Tasks that have not ended.
    #[must_use]
    pub fn task_count(&self) -> usize {
        self.with(|state| state.tasks.len())
    }

    /// The name the node was given.
    #[must_use]
    pub fn name(&self, node: NodeId) -> String {
        self.with(|state| state.nodes[node.0 as usize].name.clone())
    }

    pub(crate) fn spawn_on(&self, life: &Incarnation, task: BoxFuture<'static, ()>) {
        if life.is_alive() {
            self.with(|state| state.tasks.spawn(life.clone(), task, &state.ready));
        }
    }

    pub(crate) fn schedule_work(&self, life: &Incarnation, work: Box<dyn FnOnce() + Send>) {
        if life.is_alive() {
            self.with(|state| {
                let at = state.now + state.rng.duration(Duration::ZERO, WORK_DELAY_MAX);
                state.timeline.add(at, Event::Work(life.clone(), work));
            });
        }
    }
}

/// State of ended incarnations, to be dropped without a lock.
struct Remains {
    tasks: Vec<crate::task::Task>,
    ports: Vec<PortState>,
    disks: Vec<SimDisk>,
    watchers: Vec<std::task::Waker>,
    /// Wakers of dropped tasks that waited for streams.
    waiting: Vec<std::task::Waker>,
}

impl State {
    pub(crate) fn make_ready(&mut self, id: PortId) {
        if let Some(port) = self.net.ports.get_mut(&id)
            && !port.queued
        {
            port.queued = true;
            self.ready.push(Ready::Port(id));
        }
    }

    fn bind(
        &mut self,
        life: Incarnation,
        address: SocketAddr,
        handler: Arc<dyn PortHandler>,
    ) -> (PortId, Option<PortState>) {
        let gone = self.net.bound.get(&address).copied().and_then(|old| self.unbind(old));
        self.net.next_port += 1;
        let id = PortId(self.net.next_port);
        self.net.bound.insert(address, id);
        self.net.ports.insert(
            id,
            PortState {
                address,
                life,
                handler,
                inbox: Vec::new(),
                timed_out: false,
                queued: false,
                timeout: None,
            },
        );
        (id, gone)
    }

    pub(crate) fn unbind(&mut self, id: PortId) -> Option<PortState> {
        let port = self.net.ports.remove(&id)?;
        self.net.bound.remove(&port.address);
        if let Some(due) = port.timeout {
            self.timeline.cancel(due);
        }
        Some(port)
    }

    fn take_remains(&mut self) -> Option<Remains> {
        let mut died = Vec::new();
        let mut watchers = Vec::new();
        for (index, node) in self.nodes.iter_mut().enumerate() {
            if !node.life.is_alive() && !node.removed {
                node.removed = true;
                watchers.append(&mut node.watchers);
                died.push((NodeId(u32::try_from(index).unwrap_or(u32::MAX)), node.name.clone()));
            }
        }
        if died.is_empty() {
            return None;
        }
        for (_, name) in &died {
            self.event_log.add(self.now, Line::Text(format!("{name} is dead")));
        }
        let dead_ports: Vec<_> =
            self.net.ports.iter().filter(|(_, port)| !port.life.is_alive()).map(|(id, _)| *id).collect();
        let ports = dead_ports.into_iter().filter_map(|id| self.unbind(id)).collect();
        let is_dead = |owner: &NodeId| died.iter().any(|(id, _)| id == owner);
        let disks =
            self.disks.iter().filter(|(owner, _)| is_dead(owner)).map(|(_, disk)| disk.clone()).collect();
        let waiting = self.abandon_dead_streams();
        Some(Remains { tasks: self.tasks.take_dead(), ports, disks, watchers, waiting })
    }
}
