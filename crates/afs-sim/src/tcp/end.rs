//! One end of a connection, and the two of them.

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

/// Which end: the index into [`Connection::ends`].
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
    /// Nothing arrives any more.
    pub(super) is_silent: bool,
}

impl Connection {
    pub(super) fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side as usize]
    }

    /// Whether nothing of it can be seen any more.
    pub(super) fn is_over(&self) -> bool {
        self.ends.iter().all(|end| !end.is_held && end.wire.is_empty() && end.outbox.is_empty())
    }

    pub(super) fn is_established(&self) -> bool {
        self.ends.iter().all(|end| end.is_established)
    }
}

/// What travels from one end to the other, in order.
#[derive(Debug)]
pub(super) enum Segment {
    /// The three of the handshake.
    Syn,
    SynAck,
    Ack,
    Data(Bytes),
    /// The receiver has made room for so many bytes.
    Window(usize),
    /// No more data.
    Fin,
    Reset,
}

/// Whether the program still writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fin {
    Open,
    /// After what is in the outbox.
    Wanted,
    Sent,
}

pub(crate) struct End {
    pub(super) address: SocketAddr,
    /// Where it is; `None` for an address that no node owns.
    pub(super) node: Option<NodeId>,
    /// The life of the node that knows of the connection.
    pub(super) life: Option<Incarnation>,
    /// A program, or a listener's queue, has it.
    pub(super) is_held: bool,
    pub(super) is_established: bool,
    pub(super) error: Option<io::ErrorKind>,

    /// Arrived, not read.
    pub(super) inbox: VecDeque<u8>,
    /// Read, and not yet told to the other end.
    pub(super) untold: usize,
    /// The other end's FIN has come.
    pub(super) is_at_end: bool,
    pub(super) reading: Option<Waker>,
    pub(super) writing: Option<Waker>,

    /// Written, not on the wire.
    pub(super) outbox: VecDeque<u8>,
    pub(super) fin: Fin,
    /// Bytes for which the other end has room.
    pub(super) credit: usize,
    /// On the way to the other end, with the instants of arrival.
    pub(super) wire: VecDeque<(Instant, Segment)>,
    pub(super) due: Option<Due>,
    /// The link is busy with earlier bytes until then.
    pub(super) busy_until: Instant,
    /// Since when the other end has not answered, and the pause before the next attempt.
    pub(super) unanswered: Option<(Instant, Duration)>,
    /// Bytes put on the wire, and bytes that arrived.
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
            untold: 0,
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

    /// Ends both directions with an error. Answers whom to wake.
    pub(super) fn fail(&mut self, error: io::ErrorKind) -> impl Iterator<Item = Waker> + use<> {
        self.error.get_or_insert(error);
        self.outbox.clear();
        self.wire.clear();
        self.fin = Fin::Sent;
        self.reading.take().into_iter().chain(self.writing.take())
    }

    /// Its machine is gone, or its program after a reset: nothing is sent and nothing read any more. What is on the wire goes on.
    pub(super) fn abandon(&mut self) -> impl Iterator<Item = Waker> + use<> {
        self.is_held = false;
        self.inbox.clear();
        self.outbox.clear();
        self.fin = Fin::Sent;
        self.reading.take().into_iter().chain(self.writing.take())
    }
}
