//! A machine that is suspended: its software stops between two instructions and goes on later.
//!
//! While it sleeps nothing of it runs, datagrams to it are lost, and its wall clock goes on. Whether its monotonic clock
//! does is a property of the clock that the software reads: `CLOCK_BOOTTIME` of Linux goes on, `CLOCK_MONOTONIC` stands
//! still (clock_gettime(2)).

use std::time::Duration;

use afs_rpc::Instant;

use crate::node::{Node, NodeId};
use crate::task::Ready;
use crate::timeline::Happening;
use crate::world::{State, World};

/// What the monotonic clock of a machine does while the machine sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SleepClock {
    /// It goes on: timers that ended meanwhile fire when the machine goes on.
    GoesOn,
    /// It stands still: timers fire as much later as the machine slept.
    StandsStill,
}

/// What waits for a sleeping machine.
#[derive(Default)]
pub(crate) struct Asleep {
    since: Option<(Instant, SleepClock)>,
    ready: Vec<Ready>,
    happenings: Vec<Happening>,
    /// What the machine's monotonic clock is behind the world's.
    pub(crate) behind: Duration,
}

impl Asleep {
    pub(crate) fn is_asleep(&self) -> bool {
        self.since.is_some()
    }
}

impl World {
    /// Stops a machine. Stopping it twice changes nothing.
    pub fn suspend(&self, node: NodeId, clock: SleepClock) {
        self.note(format!("{} falls asleep", self.name(node)));
        self.with(|state| {
            let now = state.now;
            let asleep = &mut state.nodes[node.0 as usize].asleep;
            asleep.since.get_or_insert((now, clock));
        });
    }

    /// Lets a machine go on.
    pub fn resume(&self, node: NodeId) {
        self.note(format!("{} wakes", self.name(node)));
        self.with(|state| {
            let now = state.now;
            let asleep = &mut state.nodes[node.0 as usize].asleep;
            let Some((since, clock)) = asleep.since.take() else { return };
            if clock == SleepClock::StandsStill {
                asleep.behind += now - since;
            }
            let (ready, happenings) =
                (std::mem::take(&mut asleep.ready), std::mem::take(&mut asleep.happenings));
            ready.into_iter().for_each(|item| self.shared.ready.push(item));
            for happening in happenings {
                state.timeline.add(now, happening);
            }
        });
    }

    /// Puts something aside that is ready on a machine that sleeps. False if it may run.
    pub(crate) fn hold(&self, item: Ready) -> bool {
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

    /// Puts work of a machine that sleeps aside; gives back what may run.
    pub(crate) fn hold_work(&self, happening: Happening) -> Option<Happening> {
        let Happening::Work(life, _) = &happening else { return Some(happening) };
        let node = life.node;
        self.with(|state| match state.sleeper(node) {
            Some(asleep) => {
                asleep.happenings.push(happening);
                None
            }
            None => Some(happening),
        })
    }
}

impl State {
    fn sleeper(&mut self, node: NodeId) -> Option<&mut Asleep> {
        self.nodes.get_mut(node.0 as usize).map(|node| &mut node.asleep).filter(|asleep| asleep.is_asleep())
    }

    pub(crate) fn is_asleep(&self, node: NodeId) -> bool {
        self.nodes.get(node.0 as usize).is_some_and(|node| node.asleep.is_asleep())
    }
}

impl Node {
    /// The time on the machine's monotonic clock at an instant of the world.
    pub(crate) fn local(&self, now: Instant) -> Instant {
        let behind = match self.asleep.since {
            Some((since, SleepClock::StandsStill)) => self.asleep.behind + (now - since),
            _ => self.asleep.behind,
        };
        // A machine's clock is never behind by more than the world is old.
        Instant::ZERO + (now - Instant::ZERO).saturating_sub(behind)
    }

    /// When the machine's clock will show `at`, if it does not sleep again until then.
    pub(crate) fn global(&self, at: Instant) -> Instant {
        at + self.asleep.behind
    }
}
