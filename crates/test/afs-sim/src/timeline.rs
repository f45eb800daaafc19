//! Event queue, ordered by time.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use afs_rpc::Instant;
use bytes::Bytes;

use crate::datagram::PortId;
use crate::env::TimerWaker;
use crate::node::Incarnation;
use crate::tcp::{Side, StreamId};

/// Key of an event: events at the same instant keep the order of their creation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Due {
    pub(crate) at: Instant,
    serial: u64,
}

pub(crate) enum Event {
    /// A timer of a task.
    Timer(TimerWaker),
    /// A datagram reaches a port's address.
    Arrival { from: SocketAddr, to: SocketAddr, data: Bytes },
    /// The time-out of a port.
    PortTimeout(PortId),
    /// Segments that one end of a stream has sent are due at the other.
    Segments(StreamId, Side),
    /// Blocking work.
    Work(Incarnation, Box<dyn FnOnce() + Send>),
}

#[derive(Default)]
pub(crate) struct Timeline {
    entries: BTreeMap<Due, Event>,
    serial: u64,
}

impl Timeline {
    pub(crate) fn add(&mut self, at: Instant, what: Event) -> Due {
        self.serial += 1;
        let due = Due { at, serial: self.serial };
        self.entries.insert(due, what);
        due
    }

    pub(crate) fn cancel(&mut self, due: Due) -> Option<Event> {
        self.entries.remove(&due)
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.entries.first_key_value().map(|(due, _)| due.at)
    }

    /// The first event that is due at `now`.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Event> {
        let first = self.entries.first_entry()?;
        (first.key().at <= now).then(|| first.remove())
    }

    /// Takes all events, to be dropped without a lock.
    pub(crate) fn take_all(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.entries).into_values().collect()
    }
}
