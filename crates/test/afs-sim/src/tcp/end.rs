//! State of a connection and of its two ends.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::task::Waker;
use std::time::Duration;

use afs_rpc::Instant;
use bytes::Bytes;

use super::StreamFault;
use crate::node::{Incarnation, NodeId};
use crate::timeline::Due;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct StreamId(pub(super) u64);

/// An end: the index into [`Connection::ends`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Side {
    /// The end that connected.
    Client = 0,
    /// The end that was connected to.
    Server = 1,
}

impl Side {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

pub(crate) struct Connection {
    pub(super) ends: [End; 2],
    /// Segments are discarded: the connection has gone silent.
    pub(super) is_silent: bool,
}

impl Connection {
    pub(super) fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side as usize]
    }

    /// Whether neither end can observe the connection any more, and nothing is in flight. An outbox may have bytes left:
    /// they wait for room, which an end without a holder does not make.
    pub(super) fn is_over(&self) -> bool {
        self.ends.iter().all(|end| !end.is_held && end.wire.is_empty())
    }

    pub(super) fn is_established(&self) -> bool {
        self.ends.iter().all(|end| end.is_established)
    }
}

/// A segment, in order.
#[derive(Debug)]
pub(super) enum Segment {
    /// The handshake.
    Syn,
    SynAck,
    Ack,
    Data(Bytes),
    /// The receiver has freed this many bytes.
    Window(usize),
    /// No more data.
    Fin,
    Reset,
}

/// State of the outgoing direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fin {
    Open,
    /// FIN follows the data in the outbox.
    Wanted,
    Sent,
}

pub(crate) struct End {
    pub(super) address: SocketAddr,
    /// The node of the end; `None` for an address that belongs to no node.
    pub(super) node: Option<NodeId>,
    /// The incarnation of the node that knows of the connection.
    pub(super) life: Option<Incarnation>,
    /// Held by a program, or in a listener's queue.
    pub(super) is_held: bool,
    pub(super) is_established: bool,
    pub(super) error: Option<io::ErrorKind>,

    /// Received and unread.
    pub(super) inbox: VecDeque<u8>,
    /// Read, and not yet announced to the other end.
    pub(super) unannounced: usize,
    /// The other end's FIN has arrived.
    pub(super) is_at_end: bool,
    pub(super) reading: Option<Waker>,
    pub(super) writing: Option<Waker>,

    /// Written and not yet sent.
    pub(super) outbox: VecDeque<u8>,
    pub(super) fin: Fin,
    /// Free bytes in the other end's receive buffer.
    pub(super) credit: usize,
    /// Segments in flight, with their times of arrival.
    pub(super) wire: VecDeque<(Instant, Segment)>,
    pub(super) due: Option<Due>,
    /// The link transmits earlier bytes until then.
    pub(super) busy_until: Instant,
    /// Since when the other end has not replied, and the pause before the next attempt.
    pub(super) unanswered: Option<(Instant, Duration)>,
    /// Bytes sent, and bytes that arrived.
    pub(super) sent: u64,
    pub(super) arrived: u64,
    pub(super) fault: Option<StreamFault>,
}

impl End {
    pub(super) fn new(address: SocketAddr, node: Option<NodeId>, life: Option<Incarnation>) -> Self {
        Self {
            address,
            node,
            life,
            is_held: false,
            is_established: false,
            error: None,
            inbox: VecDeque::new(),
            unannounced: 0,
            is_at_end: false,
            reading: None,
            writing: None,
            outbox: VecDeque::new(),
            fin: Fin::Open,
            credit: 0,
            wire: VecDeque::new(),
            due: None,
            busy_until: Instant::ZERO,
            unanswered: None,
            sent: 0,
            arrived: 0,
            fault: None,
        }
    }

    /// Whether its machine still knows of the connection.
    pub(super) fn is_alive(&self) -> bool {
        self.life.as_ref().is_some_and(Incarnation::is_alive)
    }

    /// Ends both directions with an error. Returns the wakers.
    pub(super) fn fail(&mut self, error: io::ErrorKind) -> impl Iterator<Item = Waker> + use<> {
        self.error.get_or_insert(error);
        self.outbox.clear();
        self.wire.clear();
        self.fin = Fin::Sent;
        self.reading.take().into_iter().chain(self.writing.take())
    }

    /// Its machine has crashed, or its program has ended with a reset: nothing more is sent or read. Segments in
    /// flight still arrive.
    pub(super) fn abandon(&mut self) -> impl Iterator<Item = Waker> + use<> {
        self.is_held = false;
        self.inbox.clear();
        self.outbox.clear();
        self.fin = Fin::Sent;
        self.reading.take().into_iter().chain(self.writing.take())
    }
}
