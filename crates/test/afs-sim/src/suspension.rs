//! Suspension of a node: its software stops between two instructions and continues after the resume.
//!
//! In suspend nothing of it runs, datagrams to it are lost, and its wall clock continues. Whether its monotonic clock
//! continues is a property of the clock that the software reads: `CLOCK_BOOTTIME` of Linux does, `CLOCK_MONOTONIC`
//! does not (clock_gettime(2)).

use std::time::Duration;

use afs_rpc::Instant;

use crate::node::{Node, NodeId};
use crate::task::Ready;
use crate::timeline::Event;
use crate::world::{State, World};

/// Behaviour of a machine's monotonic clock in suspend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SleepClock {
    /// It continues: timers that expired meanwhile fire at the resume.
    GoesOn,
    /// It stands still: timers fire later by the time in suspend.
    StandsStill,
}

/// Suspension of a node, and what waits for its end.
#[derive(Default)]
pub(crate) struct Suspension {
    since: Option<(Instant, SleepClock)>,
    ready: Vec<Ready>,
    events: Vec<Event>,
    /// How far the machine's monotonic clock lags the simulation's.
    pub(crate) behind: Duration,
}

impl Suspension {
    pub(crate) fn is_asleep(&self) -> bool {
        self.since.is_some()
    }
}

impl World {
    /// Suspends a machine. A second call changes nothing.
    pub fn suspend(&self, node: NodeId, clock: SleepClock) {
        self.note(format!("{} falls asleep", self.name(node)));
        self.with(|state| {
            let now = state.now;
            let asleep = &mut state.nodes[node.0 as usize].suspension;
            asleep.since.get_or_insert((now, clock));
        });
    }

    /// Resumes a machine.
    pub fn resume(&self, node: NodeId) {
        self.note(format!("{} wakes", self.name(node)));
        self.with(|state| {
            let now = state.now;
            let asleep = &mut state.nodes[node.0 as usize].suspension;
            let Some((since, clock)) = asleep.since.take() else { return };
            if clock == SleepClock::StandsStill {
                asleep.behind += now - since;
            }
            let (ready, events) = (std::mem::take(&mut asleep.ready), std::mem::take(&mut asleep.events));
            ready.into_iter().for_each(|item| self.shared.ready.push(item));
            for event in events {
                state.timeline.add(now, event);
            }
        });
    }

    /// Defers a ready item of a suspended machine. False if it may run.
    pub(crate) fn defer_ready(&self, item: Ready) -> bool {
        self.with(|state| {
            let node = match item {
                Ready::Task(id) => state.tasks.node_of(id),
                Ready::Port(id) => state.net.ports.get(&id).map(|port| port.life.node),
            };
            let Some(asleep) = node.and_then(|node| state.sleeper(node)) else { return false };
            asleep.ready.push(item);
            true
        })
    }

    /// Defers work of a suspended machine; returns what may run.
    pub(crate) fn defer_work(&self, event: Event) -> Option<Event> {
        let Event::Work(life, _) = &event else { return Some(event) };
        let node = life.node;
        self.with(|state| match state.sleeper(node) {
            Some(asleep) => {
                asleep.events.push(event);
                None
            }
            None => Some(event),
        })
    }
}

impl State {
    fn sleeper(&mut self, node: NodeId) -> Option<&mut Suspension> {
        self.nodes
            .get_mut(node.0 as usize)
            .map(|node| &mut node.suspension)
            .filter(|suspension| suspension.is_asleep())
    }

    pub(crate) fn is_asleep(&self, node: NodeId) -> bool {
        self.nodes.get(node.0 as usize).is_some_and(|node| node.suspension.is_asleep())
    }
}

impl Node {
    /// The time on the machine's monotonic clock at an instant of the simulation.
    pub(crate) fn local(&self, now: Instant) -> Instant {
        let behind = match self.suspension.since {
            Some((since, SleepClock::StandsStill)) => self.suspension.behind + (now - since),
            _ => self.suspension.behind,
        };
        // A machine's clock never lags by more than the age of the simulation.
        Instant::ZERO + (now - Instant::ZERO).saturating_sub(behind)
    }

    /// When the machine's clock will reach `at`, without another suspension.
    pub(crate) fn global(&self, at: Instant) -> Instant {
        at + self.suspension.behind
    }
}
